internal import CipherSQLiteFormat

/// Whether a `-wal` continues from the database beside it.
///
/// Nothing in a database names its log, so SQLite merges a log and another copy of its database into what never was. Two
/// things tell most of them.
///
/// Each time that page 1 gets into the log SQLite sets its change counter to one more than stands in the page that the
/// writer had read; in an encrypted file it takes the encrypted bytes for that number. And a checkpoint brings the page into
/// the file as it is. So the page 1 of the file is one of the log's, or the first one in the log was made from it, or by a
/// connection that had also made the file's and read neither again. And the number of pages is on page 1, so a log without
/// it leaves that number as it is.
///
/// What neither tells passes: no sign refuses a database that is whole.
/// Source: SQLite, "Database File Format", sections 1.3.7, 1.3.8 and 4, and its `pager.c`; measured with SQLite 3.15, 3.40
/// and 3.46.
package struct LogMatch {
    package let paths: DatabasePaths
    /// Page 1 of the database file, or its first 112 bytes at least, as it is in the file.
    package let firstPage: () throws -> [UInt8]
    /// Makes the content of page 1 of what is in the file or the log.
    package let opening: ([UInt8]) throws -> [UInt8]

    package init(
        paths: DatabasePaths, firstPage: @escaping () throws -> [UInt8], opening: @escaping ([UInt8]) throws -> [UInt8]
    ) {
        self.paths = paths
        self.firstPage = firstPage
        self.opening = opening
    }

    /// Whether the log is of another copy.
    package func isOther() throws -> Bool {
        guard let log = try SidecarFile(paths.wal), let claims = try LogHeader(log) else { return false }
        let before = try firstPage()
        let header = FileHeader(bytes: try opening(before), fileSize: 0)
        guard header.changeCounter != nil, header.pageSize == claims.pageSize,
            try contradicts(before, header, claims, log, checksSums: false),
            try contradicts(before, header, claims, log, checksSums: true)
        else { return false }
        // A process that checkpoints meanwhile vouches for both.
        return try firstPage() == before
    }

    private func contradicts(
        _ page: [UInt8], _ header: FileHeader, _ claims: LogHeader, _ log: SidecarFile, checksSums: Bool
    ) throws -> Bool {
        var resizes = false
        var committed: [Int64] = []
        var pending: [Int64] = []
        try claims.forEachFrame(of: log, checksSums: checksSums) { frame in
            if frame.page == 1 { pending.append(frame.offset) }
            guard frame.pagesAtCommit > 0 else { return }
            resizes = resizes || Int(frame.pagesAtCommit) != header.claimedPages
            committed += pending
            pending = []
        }
        guard let first = committed.first else { return resizes }
        let present = Self.counter(in: page)
        for offset in committed.reversed() {
            guard let start = try log.read(at: offset, count: FileHeader.length) else { return false }
            if Self.counter(in: start) == present { return false }
        }
        guard let made = try log.read(at: first, count: claims.pageSize),
            let counter = FileHeader(bytes: try opening(made), fileSize: 0).changeCounter
        else { return false }
        // An engine that decrypts the page first takes the number that it holds.
        return ![present &+ 1, header.changeCounter, header.changeCounter.map { $0 &+ 1 }].contains(counter)
    }

    /// What SQLite takes for the change counter, encrypted or not.
    private static func counter(in page: [UInt8]) -> UInt32 { page.big32(24) }
}
