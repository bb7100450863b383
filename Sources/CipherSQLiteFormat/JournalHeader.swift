/// The header of a `-journal` file.
///
/// Source: SQLite, "Database File Format", section 3, and its `pager.c`.
package struct JournalHeader {
    package static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    package static let length = 28

    /// Whether SQLite would play the journal back, or would try to do so despite a damaged magic number.
    ///
    /// SQLite examines only the first byte. If the rest of the magic number is wrong, it restores nothing and deletes the
    /// journal.
    package var isHot: Bool { hasMagic || isMarked && pageSize.isPageSize && isSectorSize }
    private let hasMagic: Bool
    /// Whether the first byte is not zero, and the bytes are not the beginning of a magic number that a power loss
    /// cut short.
    private let isMarked: Bool
    /// The size of the database before the transaction, in pages.
    package let initialPages: UInt32
    package let sector: Int64
    /// The page size; 0 in journals of SQLite before 3.5.8.
    package let pageSize: Int

    package init?(_ journal: some ByteSource) throws {
        guard let bytes = try journal.read(at: 0, count: Self.length) else { return nil }
        hasMagic = bytes.starts(with: Self.magic)
        let written = zip(bytes, Self.magic).prefix { $0 == $1 }.count
        isMarked = bytes[0] != 0 && bytes[written..<max(written, 8)].contains { $0 != 0 }
        initialPages = bytes.big32(16)
        sector = Int64(bytes.big32(20))
        pageSize = Int(bytes.big32(24))
    }

    /// Where a header contains the size of the database before the transaction, the sector size and the page size.
    static let sizes = 16..<28

    private var isSectorSize: Bool { (32...65536).contains(sector) && sector & (sector - 1) == 0 }

    /// A part of a journal: a header and the page records after it.
    package struct Segment: Equatable {
        /// The offset at which the segment's first record begins.
        package let first: Int64
        /// The offset at which the segment's last record, or the journal, ends.
        package let end: Int64
        /// The initial value of the checksum of a page.
        let sum: UInt32
        /// The size of the pages.
        package let pageSize: Int
        /// Whether the header states how many records were synced.
        let isCounted: Bool
        /// Whether the journal ends before the stated number of records.
        let isCut: Bool
        /// The sizes in the header, which are the same in all segments of a transaction.
        let sizes: ArraySlice<UInt8>

        /// The offset in a record at which the page begins, after its number.
        package static let pageOffset = 4
        /// The distance from one record to the next.
        package var stride: Int64 { Int64(pageSize + 8) }

        /// Returns whether the checksum of a record is correct.
        package func hasCorrectChecksum(_ record: [UInt8]) -> Bool {
            record.withUnsafeBytes {
                $0.count >= pageSize + 8
                    && JournalHeader.sum($0.part(Self.pageOffset, pageSize), sum) == $0.big32(pageSize + 4)
            }
        }
    }

    /// Returns the segments of a journal that SQLite would play back, each after its own header at the start of a
    /// sector.
    ///
    /// Records are read only at the offsets where SQLite reads them, because at other offsets any page can look like
    /// another.
    ///
    /// - Parameter pageSize: The page size of the database, used if the journal does not contain one.
    package func segments(in journal: some ByteSource, pageSize other: Int = 0) throws -> [Segment] {
        let pageSize = pageSize == 0 ? other : pageSize
        // SQLite expects a whole sector of 512 bytes before it has read the sector size.
        guard isHot, journal.size >= 512, pageSize.isPageSize, isSectorSize else { return [] }
        let stride = Int64(pageSize + 8)
        var segments: [Segment] = []
        var offset: Int64 = 0
        while let header = try journal.read(at: offset, count: Self.length), header.starts(with: Self.magic) {
            let first = offset + sector
            // A writer that does not sync stores no count; its records continue to the end.
            let count = header.big32(8) == .max ? .max : Int64(header.big32(8))
            let isCut = count > (journal.size - first) / stride
            let end = isCut ? journal.size : first + count * stride
            segments.append(
                Segment(
                    first: first, end: end, sum: header.big32(12), pageSize: pageSize, isCounted: count != .max,
                    isCut: isCut, sizes: header[Self.sizes]))
            offset = max(first, nextHeader(after: end))
        }
        return segments
    }

    /// Returns the pages as they were before the journal's transaction; `nil` if SQLite would not play the journal
    /// back.
    ///
    /// The caller must determine whether the super-journal that the journal names still exists, because SQLite ignores
    /// a journal whose super-journal does not.
    ///
    /// - Parameter pageSize: The page size of the database, used if the journal does not contain one.
    package func originalPages(in journal: some ByteSource, pageSize: Int = 0) throws -> PageVersions? {
        let segments = try segments(in: journal, pageSize: pageSize)
        guard let pageSize = segments.first?.pageSize else { return nil }
        var offsets: [UInt32: Int64] = [:]
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pageSize + 8, alignment: 16)
        defer { memory.deallocate() }
        for segment in segments {
            var position = segment.first
            while position <= segment.end - segment.stride,
                let record = try journal.lend(at: position, count: pageSize + 8, memory)
            {
                let page = record.big32(0)
                // SQLite reads nothing after such a record either.
                guard page != 0, page != PageGeometry.lockPage(pageSize) else { return versions(offsets, pageSize) }
                if page <= initialPages {
                    let content = record.part(Segment.pageOffset, pageSize)
                    guard Self.sum(content, segment.sum) == record.big32(pageSize + 4) else {
                        return versions(offsets, pageSize)
                    }
                    offsets[page] = position + Int64(Segment.pageOffset)
                }
                position += segment.stride
            }
        }
        return versions(offsets, pageSize)
    }

    /// Returns the name of the super-journal at the end of a journal of a transaction across several databases.
    ///
    /// SQLite uses the name whatever the start of the journal contains, up to a NUL, and only if it has at most 512
    /// bytes and the correct checksum.
    package static func superJournalName(in journal: some ByteSource) throws -> [UInt8]? {
        guard let end = try journal.read(at: journal.size - 16, count: 16), end[8...].elementsEqual(magic),
            case let length = Int(end.big32(0)), (1...512).contains(length),
            let name = try journal.read(at: journal.size - 16 - Int64(length), count: length)
        else { return nil }
        let sum = name.reduce(UInt32(0)) { $0 &+ UInt32(bitPattern: Int32(CChar(truncatingIfNeeded: $1))) }
        return sum == end.big32(4) ? name : nil
    }

    private func versions(_ offsets: [UInt32: Int64], _ pageSize: Int) -> PageVersions {
        PageVersions(pageSize: pageSize, pageCount: initialPages, offsets: offsets)
    }

    /// Returns the offset of the header after a segment.
    func nextHeader(after end: Int64) -> Int64 { (end + sector - 1) / sector * sector }

    /// Returns the checksum of a page: the initial value plus every 200th byte, from the end on.
    static func sum(_ page: UnsafeRawBufferPointer, _ start: UInt32) -> UInt32 {
        stride(from: page.count - 200, to: 0, by: -200).reduce(start) { $0 &+ UInt32(page.byte($1)) }
    }

    /// Returns the largest possible sum of the bytes of a page that its checksum covers.
    static func largestSum(_ pageSize: Int) -> UInt32 { UInt32(pageSize / 200) * 255 }
}
