internal import CipherSQLiteFormat

/// Looks into a `-wal` or `-journal` for pages that do not belong to the database beside it.
///
/// SQLite trusts a sidecar by its own checksums. A plaintext one beside an encrypted file (a restored backup, a moved
/// folder) would be written over the ciphertext at the first read-write open, and the file would be gone; the same the
/// other way round. Neither kind of sidecar is ever locked by SQLite, so it may be opened here.
/// Source: SQLite, "WAL-mode File Format" and "Database File Format", section 3.
package enum SidecarScan {
    /// Whether a sidecar holds pages of the other kind than the database.
    package static func isStale(_ paths: DatabasePaths, databaseIsPlaintext: Bool) throws -> Bool {
        try any(paths) { runs in
            var findings: [PageRun.Finding] = []
            for run in runs { findings.append(try run.look(forPlaintext: !databaseIsPlaintext)) }
            if findings.contains(.foreign) { return true }
            // Every commit of a plaintext database touches a page that is known as such.
            return databaseIsPlaintext && !findings.contains(.own) && findings.contains(.unknown)
        }
    }

    /// Whether a file with the name of a log, of its index or of a journal begins as none of them does.
    ///
    /// A power loss leaves zeros, or the beginning of a header and zeros. The index is in the machine's byte order.
    static func isForeign(_ path: String) throws -> Bool {
        guard let file = try SidecarFile(path),
            let bytes = try file.read(at: 0, count: Int(min(file.size, Int64(JournalHeader.magic.count))))
        else { return false }
        let beginnings: [[UInt8]]
        if path.hasSuffix("-journal") {
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

    /// Whether a sidecar holds any page.
    ///
    /// Beside a database that is missing or empty it is all that is left of another one.
    package static func holdsPages(_ paths: DatabasePaths) throws -> Bool {
        try any(paths) { runs in runs.contains { $0.first + $0.stride <= $0.end } }
    }

    /// Page 1 as SQLite will put it back from a journal, where the journal holds it.
    static func firstPageInJournal(_ paths: DatabasePaths) throws -> [UInt8]? {
        guard let file = try SidecarFile(paths.journal) else { return nil }
        for run in try journalPages(file) {
            if let page = try run.firstPage() { return page }
        }
        return nil
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
        /// From one page to the next.
        let stride: Int64
        /// Where in each step the page begins, behind its number.
        let pageOffset: Int
        let pageSize: Int
        let end: Int64
        /// What each frame of a log repeats from its header; SQLite reads no further than it does.
        var salt: [UInt8] = []

        enum Finding {
            /// There is no page.
            case nothing
            /// A page of the kind that was not looked for.
            case own
            /// A page of the kind that was looked for.
            case foreign
            /// Pages that could be either.
            case unknown
        }

        /// Encrypted pages look random; plaintext ones are known by page 1's magic or as well-formed b-tree pages.
        func look(forPlaintext wantPlaintext: Bool) throws -> Finding {
            var buffer = [UInt8](repeating: 0, count: pageOffset + pageSize)
            var position = first
            var finding = Finding.nothing
            while position + stride <= end {
                guard try file.read(at: position, into: &buffer) else { return finding }
                // A file may be a terabyte of nothing, and is not read to its end for that.
                guard !buffer[..<4].elementsEqual([0, 0, 0, 0]), buffer[8..<(8 + salt.count)].elementsEqual(salt) else {
                    return finding
                }
                let isFirstPage = buffer[..<4].elementsEqual([0, 0, 0, 1])
                let page = Array(buffer[pageOffset...])
                let isPlaintext = isFirstPage ? FileHeader.isPlaintext(page) : BTreePage.isWellFormed(page)
                if isPlaintext { return wantPlaintext ? .foreign : .own }
                if isFirstPage { return wantPlaintext ? .own : .foreign }
                finding = .unknown
                position += stride
            }
            return finding
        }

        func firstPage() throws -> [UInt8]? {
            for position in Swift.stride(from: first, through: end - stride, by: Int(stride)) {
                guard let record = try file.read(at: position, count: pageOffset + pageSize) else { return nil }
                if record[..<4].elementsEqual([0, 0, 0, 1]) { return Array(record[pageOffset...]) }
            }
            return nil
        }
    }

    private static func walPages(_ file: SidecarFile) throws -> [PageRun] {
        guard let header = try LogHeader(file) else { return [] }
        return [
            PageRun(
                file: file, first: Int64(LogHeader.length), stride: header.stride,
                pageOffset: LogHeader.frameHeaderLength, pageSize: header.pageSize, end: file.size, salt: header.salt)
        ]
    }

    /// The segments of a journal, each behind a header of its own at the next sector.
    ///
    /// Records are read only where SQLite would play them back: read out of step, any page can look like one of the
    /// other kind.
    private static func journalPages(_ file: SidecarFile) throws -> [PageRun] {
        guard let header = try JournalHeader(file), header.pageSize.isPageSize, header.isSectorSize else { return [] }
        let (sector, pageSize) = (header.sector, header.pageSize)
        let stride = Int64(8 + pageSize)
        var runs: [PageRun] = []
        var offset: Int64 = 0
        while let segment = try file.read(at: offset, count: 12), segment.starts(with: JournalHeader.magic) {
            let first = offset + sector
            // A writer that syncs nothing does not count: its records go on to the end.
            let count = segment.big32(8) == .max ? .max : Int64(segment.big32(8))
            let end = count > (file.size - first) / stride ? file.size : first + count * stride
            runs.append(
                PageRun(file: file, first: first, stride: stride, pageOffset: 4, pageSize: pageSize, end: end))
            offset = max(first, (end + sector - 1) / sector * sector)
        }
        return runs
    }
}

/// The shape of a b-tree page, which random bytes have with a chance of about one in a thousand million.
///
/// Source: SQLite, "Database File Format", section 1.6.
enum BTreePage {
    static func isWellFormed(_ page: [UInt8]) -> Bool {
        func big16(_ offset: Int) -> Int { Int(page[offset]) << 8 | Int(page[offset + 1]) }
        let isLeaf = page[0] == 0x0d || page[0] == 0x0a
        guard isLeaf || page[0] == 0x05 || page[0] == 0x02 else { return false }
        let cells = big16(3)
        let content = big16(5) == 0 ? 65536 : big16(5)
        let pointers = isLeaf ? 8 : 12
        // The last row of a table was deleted: nothing but the header.
        if cells == 0 {
            return isLeaf && page[7] == 0 && big16(1) == 0 && (page.count - 255...page.count).contains(content)
        }
        guard page[7] <= 60, pointers + 2 * cells <= content, content < page.count, big16(1) < page.count
        else { return false }
        return (0..<cells).allSatisfy { (content..<page.count).contains(big16(pointers + 2 * $0)) }
    }
}
