internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Searches a `-wal` or `-journal` for pages that do not belong to the database beside it.
///
/// SQLite trusts a sidecar whose own checksums match. If a plaintext sidecar is beside an encrypted file (a restored
/// backup, a moved folder), SQLite would write it over the ciphertext at the first read-write open, which destroys the
/// file. The same happens the other way round. SQLite never locks either kind of sidecar, so it may be opened here.
///
/// Source: SQLite, "WAL-mode File Format" and "Database File Format", section 3.
package enum SidecarScan {
    /// Returns whether a sidecar holds plaintext pages beside an encrypted database, or the reverse.
    package static func isStale(_ paths: DatabasePaths, databaseIsPlaintext: Bool) throws -> Bool {
        // While the file is compared with the sidecar, another process may commit, and move the commit into the file.
        // The commit is in the sidecar before it is in the file, so the second search finds it.
        try (1...2).allSatisfy { _ in try holdsOtherPages(paths, databaseIsPlaintext) }
    }

    private static func holdsOtherPages(_ paths: DatabasePaths, _ databaseIsPlaintext: Bool) throws -> Bool {
        try any(paths) { runs in
            let database =
                try databaseIsPlaintext && FileSystem.exists(paths.database)
                ? DatabaseFile(path: paths.database) : nil
            var findings: [PageRun.Finding] = []
            for run in runs { findings.append(try run.whole(forPlaintext: !databaseIsPlaintext, of: database)) }
            if findings.contains(.foreign) { return true }
            // A transaction on a plaintext database writes a page that is recognizable as plaintext, or nothing but
            // overflow pages that stay where they are.
            return databaseIsPlaintext && !findings.contains(.own) && findings.contains(.unknown)
        }
    }

    /// Returns whether a file that is named like a log, its index or a journal does not begin like one.
    ///
    /// A power loss leaves zeros, or the beginning of a header and zeros. The index is in the machine's byte order. A
    /// journal is also recognized by the sizes in its header.
    static func isForeign(_ path: String) throws -> Bool {
        guard let file = try SidecarFile(path),
            let bytes = try file.read(at: 0, count: Int(min(file.size, Int64(JournalHeader.magic.count))))
        else { return false }
        let beginnings: [[UInt8]]
        if path.hasSuffix("-journal") {
            if try JournalHeader(file)?.isHot == true { return false }
            beginnings = [JournalHeader.magic]
        } else if path.hasSuffix("-wal") {
            beginnings = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]]
        } else {
            beginnings = [[0x18, 0xe2, 0x2d, 0x00], [0x00, 0x2d, 0xe2, 0x18]]
        }
        return !beginnings.contains { beginning in
            let same = zip(bytes, beginning).prefix { $0 == $1 }.count
            return bytes[same..<min(bytes.count, beginning.count)].allSatisfy { $0 == 0 }
        }
    }

    /// Returns whether a sidecar holds any page, even if its damaged header prevents SQLite from reading the page.
    ///
    /// If the database is missing or empty, such a sidecar is all that is left of an earlier database.
    package static func holdsPages(_ paths: DatabasePaths) throws -> Bool {
        if try any(paths, { runs in runs.contains { $0.first + $0.stride <= $0.end } }) { return true }
        if let log = try SidecarFile(paths.wal), try LogHeader.losesCommits(log) { return true }
        // The header of a journal may fill a sector of any size, but only the journal of a database that had pages
        // contains pages.
        guard let file = try SidecarFile(paths.journal), let journal = try JournalHeader(file) else { return false }
        return try journal.isHot && journal.initialPages > 0 && file.size > 512 && journal.segments(in: file).isEmpty
    }

    private static func any(_ paths: DatabasePaths, _ body: ([PageRun]) throws -> Bool) throws -> Bool {
        for (path, runs) in [(paths.wal, walPages), (paths.journal, journalPages)] {
            guard let file = try SidecarFile(path) else { continue }
            if try body(runs(file)) { return true }
        }
        return false
    }

    private struct PageRun {
        let file: SidecarFile
        let first: Int64
        /// The distance from one page to the next.
        let stride: Int64
        /// The offset of the page within each step, after its number.
        let pageOffset: Int
        let pageSize: Int
        var end: Int64
        /// The header of a log; `nil` for a journal.
        var log: LogHeader?
        /// The segment of a journal; `nil` for a log.
        var segment: JournalHeader.Segment?

        enum Finding {
            /// There are no pages.
            case nothing
            /// There is a page of a kind other than the one searched for.
            case own
            /// There is a page of the kind searched for.
            case foreign
            /// There are pages, and each of them could be an overflow page of the database.
            case overflow
            /// There are pages, but none of them is known to be of either kind.
            case unknown
        }

        /// Does the same as ``look(forPlaintext:of:)``, but only for the frames that SQLite reads.
        ///
        /// A killed process leaves frames of an unfinished transaction, and a power loss leaves frames whose page never
        /// reached the disk. Checksums reveal the lost pages, but checking them means reading the whole log, so it is
        /// done only if the first result requires it.
        func whole(forPlaintext wantPlaintext: Bool, of database: DatabaseFile?) throws -> Finding {
            let finding = try look(forPlaintext: wantPlaintext, of: database)
            guard let log, finding == .foreign || finding == .unknown && !wantPlaintext else { return finding }
            var run = self
            run.end = first
            if log.isWhole {
                try log.forEachFrame(of: file, checksSums: true) { frame in
                    if frame.pagesAtCommit > 0 { run.end = frame.offset + Int64(pageSize) }
                }
            }
            return try run.look(forPlaintext: wantPlaintext, of: database)
        }

        /// Searches the pages.
        ///
        /// Encrypted pages look random.
        ///
        /// Plaintext pages are recognized by page 1's magic or as well-formed b-tree pages.
        ///
        /// - Parameter database: The file whose overflow pages are recognized; `nil` for none.
        func look(forPlaintext wantPlaintext: Bool, of database: DatabaseFile?) throws -> Finding {
            var position = first
            var finding = Finding.nothing
            // SQLite stops reading a log at the first frame that does not repeat this salt.
            let salt = log?.salt ?? []
            while position + stride <= end {
                guard let buffer = try file.read(at: position, count: Int(stride)) else { return finding }
                // A file may consist of a terabyte of zeros, and need not be read to its end.
                guard !buffer[..<4].elementsEqual([0, 0, 0, 0]), buffer[8..<(8 + salt.count)].elementsEqual(salt) else {
                    return finding
                }
                let isFirstPage = buffer[..<4].elementsEqual([0, 0, 0, 1])
                // SQLite stops reading a journal at the first record whose checksum is wrong.
                if let segment, !segment.hasCorrectChecksum(buffer) { return finding }
                let page = Array(buffer[pageOffset..<(pageOffset + pageSize)])
                let isPlaintext = isFirstPage ? FileHeader.isPlaintext(page) : PageShape(page).isTree
                if isPlaintext { return wantPlaintext ? .foreign : .own }
                if isFirstPage { return wantPlaintext ? .own : .foreign }
                if finding != .unknown { finding = try isOverflow(buffer, of: database) ? .overflow : .unknown }
                position += stride
            }
            return finding
        }

        /// Returns whether a page could be another version of an overflow page of the database.
        ///
        /// Page 1 or a b-tree page is written whenever an overflow page is added, moved or removed. If only overflow
        /// pages are written, each of them has the same next page as before, whose number is in its first four bytes.
        /// Random bytes are that number with a probability of about one in four billion.
        private func isOverflow(_ record: [UInt8], of database: DatabaseFile?) throws -> Bool {
            let offset = Int64(record.big32(0) - 1) * Int64(pageSize)
            guard let present = try database?.read(at: offset, count: 4) else { return false }
            return present.elementsEqual(record[pageOffset..<pageOffset + 4])
        }

    }

    private static func walPages(_ file: SidecarFile) throws -> [PageRun] {
        guard let header = try LogHeader(file) else { return [] }
        return [
            PageRun(
                file: file, first: Int64(LogHeader.length), stride: header.stride,
                pageOffset: LogHeader.frameHeaderLength, pageSize: header.pageSize, end: file.size, log: header)
        ]
    }

    private static func journalPages(_ file: SidecarFile) throws -> [PageRun] {
        try JournalHeader(file)?.segments(in: file).map { segment in
            PageRun(
                file: file, first: segment.first, stride: segment.stride, pageOffset: JournalHeader.Segment.pageOffset,
                pageSize: segment.pageSize, end: segment.end, segment: segment)
        } ?? []
    }
}
