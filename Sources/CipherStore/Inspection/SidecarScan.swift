import CipherSQLite

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
        for scan in [try walPages(paths.wal), try journalPages(paths.journal)] {
            guard let scan else { continue }
            defer { close(scan.descriptor) }
            if try scan.holdsPages(ofDatabaseThatIsPlaintext: !databaseIsPlaintext) { return true }
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

        /// Encrypted pages look random; plaintext ones are known by page 1's magic or as well-formed b-tree pages.
        func holdsPages(ofDatabaseThatIsPlaintext wantPlaintext: Bool) throws -> Bool {
            var buffer = [UInt8](repeating: 0, count: pageOffset + pageSize)
            var position = first
            while position + stride <= end {
                let count = pread(descriptor, &buffer, buffer.count, off_t(position))
                guard count >= 0 else { throw FileSystem.failure("be read", path) }
                guard count == buffer.count else { return false }
                let isFirstPage = buffer[..<4].elementsEqual([0, 0, 0, 1])
                let page = Array(buffer[pageOffset...])
                if wantPlaintext {
                    if isFirstPage ? FileHeader.isPlaintext(page) : BTreePage.isWellFormed(page) { return true }
                } else if isFirstPage {
                    // Page 1 of a plaintext database is in nearly every log; other pages tell nothing for certain.
                    return !FileHeader.isPlaintext(page)
                }
                position += stride
            }
            return false
        }
    }

    private static func walPages(_ path: String) throws -> PageRun? {
        guard let (descriptor, size, header) = try open(path, header: 32) else { return nil }
        let magic = big32(header, 0)
        let pageSize = Int(big32(header, 8))
        guard magic & ~1 == 0x377f_0682, isPageSize(pageSize) else {
            close(descriptor)
            return nil
        }
        return PageRun(
            descriptor: descriptor, path: path, first: 32, stride: Int64(24 + pageSize), pageOffset: 24,
            pageSize: pageSize, end: size)
    }

    private static func journalPages(_ path: String) throws -> PageRun? {
        guard let (descriptor, size, header) = try open(path, header: 28) else { return nil }
        let sector = Int(big32(header, 20))
        let pageSize = Int(big32(header, 24))
        guard header.starts(with: [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]), isPageSize(pageSize),
            (32...65536).contains(sector), sector & (sector - 1) == 0
        else {
            close(descriptor)
            return nil
        }
        return PageRun(
            descriptor: descriptor, path: path, first: Int64(sector), stride: Int64(8 + pageSize), pageOffset: 4,
            pageSize: pageSize, end: size)
    }

    private static func isPageSize(_ size: Int) -> Bool { (512...65536).contains(size) && size & (size - 1) == 0 }

    private static func big32(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func open(_ path: String, header length: Int) throws -> (Int32, Int64, [UInt8])? {
        guard let status = try FileSystem.status(path), status.isRegular, status.size > length else { return nil }
        #if canImport(Glibc)
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        #elseif canImport(Musl)
            let descriptor = Musl.open(path, O_RDONLY | O_CLOEXEC)
        #else
            let descriptor = Darwin.open(path, O_RDONLY | O_CLOEXEC)
        #endif
        guard descriptor >= 0 else { throw FileSystem.failure("be opened", path) }
        var header = [UInt8](repeating: 0, count: length)
        guard pread(descriptor, &header, length, 0) == length else {
            close(descriptor)
            throw FileSystem.failure("be read", path)
        }
        return (descriptor, status.size, header)
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
        guard cells > 0, page[7] <= 60, pointers + 2 * cells <= content, content < page.count, big16(1) < page.count
        else { return false }
        return (0..<cells).allSatisfy { (content..<page.count).contains(big16(pointers + 2 * $0)) }
    }
}
