internal import CipherSQLiteFormat

/// Checks whether a `-wal` belongs to the database beside it.
///
/// A database does not identify its log, so SQLite can merge a log into another copy of its database, with a result
/// that never existed. Two signs reveal most such logs.
///
/// Whenever page 1 is written to the log, SQLite sets the page's change counter to one more than the value in the page
/// that the writer had read. In an encrypted file, it interprets the encrypted bytes as that value. A checkpoint copies
/// the page into the file unchanged. Therefore one of the following three statements holds: page 1 of the file is one
/// of the log's versions; the log's first version was made from the file's page; or both were made by one connection
/// that reread neither. In addition, a log without page 1 does not change the number of pages on it. Its commits state
/// a size between that number and the length that the file had when the log began: the file may be longer than its
/// header states, if it grows in chunks or if a writer was killed before it truncated the file. No checkpoint of the log
/// makes the file shorter than that size.
///
/// A log that shows neither sign is accepted. A log that belongs to an encrypted database is refused in one case: its
/// first transaction changed page 1, rolled back to a savepoint that it had begun after that, and kept the savepoint's
/// journal in a file (`PRAGMA temp_store`). SQLite then takes the number from the encrypted page in that journal.
///
/// Source: SQLite, "Database File Format", sections 1.3.7, 1.3.8 and 4, and its `pager.c`; measured with SQLite 3.15,
/// 3.40 and 3.46.
package struct LogMatch {
    package let paths: DatabasePaths
    /// Reads page 1 of the database file as stored, or at least its first 112 bytes, and then the file's size.
    package let firstPage: () throws -> (bytes: [UInt8], fileSize: Int64)
    /// Converts page 1, as stored in the file or the log, to its plaintext content.
    package let opening: ([UInt8]) throws -> [UInt8]

    package init(
        paths: DatabasePaths, firstPage: @escaping () throws -> (bytes: [UInt8], fileSize: Int64),
        opening: @escaping ([UInt8]) throws -> [UInt8]
    ) {
        self.paths = paths
        self.firstPage = firstPage
        self.opening = opening
    }

    /// Returns whether the log belongs to another copy.
    package func isOther() throws -> Bool {
        guard let log = try SidecarFile(paths.wal), let claims = try LogHeader(log) else { return false }
        let (before, size) = try firstPage()
        let header = FileHeader(bytes: try opening(before), fileSize: size)
        guard header.changeCounter != nil, header.pageSize == claims.pageSize,
            try contradicts(before, header, claims, log, checksSums: false),
            try contradicts(before, header, claims, log, checksSums: true)
        else { return false }
        // If the page has changed, another process is checkpointing this log into this file, so the two belong
        // together.
        return try firstPage().bytes == before
    }

    private func contradicts(
        _ page: [UInt8], _ header: FileHeader, _ claims: LogHeader, _ log: SidecarFile, checksSums: Bool
    ) throws -> Bool {
        let claimed = Int64(header.claimedPages ?? 0)
        let inFile = (header.fileSize + Int64(claims.pageSize) - 1) / Int64(claims.pageSize)
        var resizes = false
        var committed: [Int64] = []
        var pending: [Int64] = []
        try claims.forEachFrame(of: log, checksSums: checksSums) { frame in
            if frame.page == 1 { pending.append(frame.offset) }
            guard frame.pagesAtCommit > 0 else { return }
            resizes = resizes || !(claimed...max(claimed, inFile)).contains(Int64(frame.pagesAtCommit))
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
        // An engine that decrypts the page first uses the decrypted number.
        return ![present &+ 1, header.changeCounter, header.changeCounter.map { $0 &+ 1 }].contains(counter)
    }

    /// Returns the bytes that SQLite interprets as the change counter, encrypted or not.
    private static func counter(in page: [UInt8]) -> UInt32 { page.big32(24) }
}
