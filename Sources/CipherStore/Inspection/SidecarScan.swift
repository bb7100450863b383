#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Looks into a `-wal` or `-journal` for pages that do not belong to the database beside it.
///
/// SQLite trusts a sidecar by its own checksums. A plaintext one beside an encrypted file (a restored backup, a moved
/// folder) would be written over the ciphertext at the first read-write open, and the file would be gone; the same the
/// other way round. Neither kind of sidecar is ever locked by SQLite, so it may be opened here.
/// Source: SQLite, "WAL-mode File Format" and "Database File Format", section 3.
enum SidecarScan {
    /// Whether a sidecar holds pages of the other kind than the database.
    static func isStale(_ paths: DatabasePaths, databaseIsPlaintext: Bool) throws -> Bool {
        try any(paths) { runs in
            var findings: [PageRun.Finding] = []
            for run in runs { findings.append(try run.look(forPlaintext: !databaseIsPlaintext)) }
            if findings.contains(.foreign) { return true }
            // Every commit of a plaintext database touches a page that is known as such.
            return databaseIsPlaintext && !findings.contains(.own) && findings.contains(.unknown)
        }
    }

    /// Whether a sidecar holds any page.
    ///
    /// Beside a database that is missing or empty it is all that is left of another one.
    static func holdsPages(_ paths: DatabasePaths) throws -> Bool {
        try any(paths) { runs in runs.contains { $0.first + $0.stride <= $0.end } }
    }

    /// Page 1 as SQLite will put it back from a journal, where the journal holds it.
    static func firstPageInJournal(_ paths: DatabasePaths) throws -> [UInt8]? {
        guard let (descriptor, size) = try open(paths.journal) else { return nil }
        defer { close(descriptor) }
        for run in try journalPages(descriptor, paths.journal, size) {
            if let page = try run.firstPage() { return page }
        }
        return nil
    }

    private static func any(_ paths: DatabasePaths, _ body: ([PageRun]) throws -> Bool) throws -> Bool {
        for (path, runs) in [(paths.wal, walPages), (paths.journal, journalPages)] {
            guard let (descriptor, size) = try open(path) else { continue }
            defer { close(descriptor) }
            if try body(runs(descriptor, path, size)) { return true }
        }
        return false
    }

    private struct PageRun {
        let descriptor: Int32
        let path: String
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
                let count = pread(descriptor, &buffer, buffer.count, off_t(position))
                guard count >= 0 else { throw FileSystem.failure("be read", path) }
                guard count == buffer.count else { return finding }
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
                guard let record = try SidecarScan.read(descriptor, path, at: position, count: pageOffset + pageSize)
                else { return nil }
                if record[..<4].elementsEqual([0, 0, 0, 1]) { return Array(record[pageOffset...]) }
            }
            return nil
        }
    }

    private static func walPages(_ descriptor: Int32, _ path: String, _ size: Int64) throws -> [PageRun] {
        guard let header = try read(descriptor, path, at: 0, count: 32) else { return [] }
        let pageSize = Int(big32(header, 8))
        guard big32(header, 0) & ~1 == 0x377f_0682, isPageSize(pageSize) else { return [] }
        return [
            PageRun(
                descriptor: descriptor, path: path, first: 32, stride: Int64(24 + pageSize), pageOffset: 24,
                pageSize: pageSize, end: size, salt: Array(header[16..<24]))
        ]
    }

    /// The segments of a journal, each behind a header of its own at the next sector.
    ///
    /// Records are read only where SQLite would play them back: read out of step, any page can look like one of the
    /// other kind.
    private static func journalPages(_ descriptor: Int32, _ path: String, _ size: Int64) throws -> [PageRun] {
        guard let header = try read(descriptor, path, at: 0, count: 28) else { return [] }
        let sector = Int64(big32(header, 20))
        let pageSize = Int(big32(header, 24))
        guard isPageSize(pageSize), (32...65536).contains(sector), sector & (sector - 1) == 0 else { return [] }
        let stride = Int64(8 + pageSize)
        var runs: [PageRun] = []
        var offset: Int64 = 0
        while let header = try read(descriptor, path, at: offset, count: 12),
            header.starts(with: [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])
        {
            let first = offset + sector
            // A writer that syncs nothing does not count: its records go on to the end.
            let count = big32(header, 8) == .max ? .max : Int64(big32(header, 8))
            let end = count > (size - first) / stride ? size : first + count * stride
            runs.append(
                PageRun(
                    descriptor: descriptor, path: path, first: first, stride: stride, pageOffset: 4,
                    pageSize: pageSize, end: end))
            offset = max(first, (end + sector - 1) / sector * sector)
        }
        return runs
    }

    private static func isPageSize(_ size: Int) -> Bool { (512...65536).contains(size) && size & (size - 1) == 0 }

    private static func big32(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func open(_ path: String) throws -> (descriptor: Int32, size: Int64)? {
        guard let status = try FileSystem.status(path), status.isRegular, status.size > 0 else { return nil }
        #if canImport(Glibc)
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        #elseif canImport(Musl)
            let descriptor = Musl.open(path, O_RDONLY | O_CLOEXEC)
        #else
            let descriptor = Darwin.open(path, O_RDONLY | O_CLOEXEC)
        #endif
        guard descriptor >= 0 else { throw FileSystem.failure("be opened", path) }
        return (descriptor, status.size)
    }

    /// `nil` where the file ends before.
    private static func read(_ descriptor: Int32, _ path: String, at offset: Int64, count: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = pread(descriptor, &bytes, count, off_t(offset))
        guard result >= 0 else { throw FileSystem.failure("be read", path) }
        return result == count ? bytes : nil
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
