extension JournalHeader {
    /// Returns whether a page of the database has the same content as its record in the journal.
    ///
    /// The checksum covers only every 200th byte. Therefore it may be correct although a power loss has left zeros in
    /// place of a part of the record.
    package typealias Comparison = (
        _ page: UInt32, _ record: UnsafeRawBufferPointer, _ present: UnsafeRawBufferPointer
    ) throws -> Bool

    /// Returns whether a record has the content of a page, except for zeros in place of a part of the record.
    ///
    /// If the page has not been changed, such a record has a correct checksum only if its checksum is that of the page.
    package static func isSame(_ record: UnsafeRawBufferPointer, _ present: UnsafeRawBufferPointer) -> Bool {
        record.elementsEqual(present)
            || sum(record, 0) == sum(present, 0) && zip(record, present).allSatisfy { $0 == $1 || $0 == 0 }
    }

    /// Returns whether SQLite would not restore all pages that the journal's transaction changed, so that they are mixed
    /// with pages of the unfinished transaction.
    ///
    /// A broken or missing record alone is not damage: if the power fails while the journal is being synced, such a
    /// record remains, and no page of its segment has been changed in the database yet. SQLite changes a page only after
    /// the page's segment has been synced, and page 1 only at the commit, after all segments have been synced. A segment
    /// that has not been synced has a header without the magic number.
    ///
    /// In the modes PERSIST and EXCLUSIVE, records of older transactions can follow, whose pages have been changed since.
    /// SQLite overwrites the first byte of a header at which an older segment would continue the journal. A writer that
    /// does not sync stores no record count, and its records prove nothing.
    ///
    /// Source: SQLite, `pager.c`, `syncJournal`, `writeJournalHdr` and `pager_playback`.
    ///
    /// - Parameters:
    ///   - database: The bytes of the database file.
    ///   - other: The page size of the database, used if the journal does not contain one.
    ///   - isSame: Compares the pages of an encrypted database, which are encrypted anew for the journal.
    package func isDamaged(
        in journal: some ByteSource, of database: some ByteSource, pageSize other: Int = 0,
        isSame: Comparison = { isSame($1, $2) }
    ) throws -> Bool {
        let segments = try segments(in: journal, pageSize: other)
        // SQLite restores nothing and deletes the journal. A power loss can leave only a part of the header.
        guard let first = segments.first else {
            return try isHot && journal.size >= 512 && database.size > 0 && hasContent(journal)
        }
        guard first.isCounted else { return false }
        let records = JournalRecords(journal: journal, database: database, initialPages: initialPages, segment: first)
        defer { records.close() }
        let own = segments.prefix { $0.sizes.elementsEqual(first.sizes) }
        var broken = own.count
        var pages = Set<UInt32>()
        // The last segment that is known to have been synced.
        var synced = database.size > Int64(initialPages) * Int64(first.pageSize) ? 0 : -1
        for (number, segment) in own.enumerated() {
            if segment.isCut { broken = min(broken, number) }
            var gap = 0
            for position in stride(from: segment.first, through: segment.end - segment.stride, by: Int(segment.stride))
            {
                guard gap < Self.longestGap else { break }
                guard let record = try records.record(at: position), record.sum == segment.sum else {
                    broken = min(broken, number)
                    gap += 1
                    continue
                }
                gap = 0
                pages.insert(record.page)
                let proven = record.page == 1 ? own.count - 1 : number
                if synced < proven, try records.isChanged(record, isSame) { synced = proven }
            }
        }
        if broken < own.count { return broken <= max(synced, own.count - 2) }
        // SQLite would also restore the pages of an older transaction whose header follows.
        return try own.count < segments.count || hasUnreadRecords(after: own[own.count - 1], pages, records, isSame)
    }

    /// The number of places without a record after which no record is searched for: anyone can make a file of terabytes,
    /// of which the disk holds nothing.
    private static let longestGap = 4_096

    /// Returns whether a journal contains anything but zeros after the header, or so many zeros that the rest is not read.
    private func hasContent(_ journal: some ByteSource) throws -> Bool {
        var position = Int64(Self.length)
        let end = min(journal.size, 64 << 20)
        while position < end, let part = try journal.read(at: position, count: min(1 << 16, Int(end - position))) {
            if part.contains(where: { $0 != 0 }) { return true }
            position += Int64(part.count)
        }
        return journal.size > end
    }

    /// Returns whether the records that SQLite does not read, because of a damaged count or header, include one of a
    /// changed page.
    ///
    /// - Parameter pages: The pages whose records SQLite reads.
    private func hasUnreadRecords(
        after last: Segment, _ pages: Set<UInt32>, _ records: JournalRecords<some ByteSource, some ByteSource>,
        _ isSame: Comparison
    ) throws -> Bool {
        var position = last.end
        while let record = try records.record(at: position), record.sum == last.sum {
            if try records.isChanged(record, isSame) { return true }
            position += last.stride
        }
        let next = nextHeader(after: last.end)
        guard let header = try records.journal.read(at: next, count: Self.length),
            header[0] != 0 || !header[1..<8].elementsEqual(Self.magic[1...])
        else { return false }
        position = next + sector
        let hasSizes = header[Self.sizes].elementsEqual(last.sizes)
        // The header of a segment that has not been synced.
        if hasSizes, header[..<12].allSatisfy({ $0 == 0 }) { return false }
        guard let sum = try hasSizes ? header.big32(12) : records.commonInitialValue(from: position, last.stride) else {
            return false
        }
        var (isChanged, gap) = (false, 0)
        while position <= records.journal.size - last.stride, gap < Self.longestGap {
            gap += 1
            if let record = try records.record(at: position), record.sum == sum {
                gap = 0
                // A transaction writes only one record of each page.
                if pages.contains(record.page) { return false }
                if !isChanged { isChanged = try records.isChanged(record, isSame) }
            }
            position += last.stride
        }
        return isChanged
    }
}

/// The page records of a journal, and the pages of the database.
private struct JournalRecords<Journal: ByteSource, Database: ByteSource> {
    struct Record {
        let page: UInt32
        let content: UnsafeRawBufferPointer
        /// The initial value with which the checksum is correct.
        let sum: UInt32
    }

    let journal: Journal
    private let database: Database
    private let initialPages: UInt32
    private let pageSize: Int
    /// Memory for a record and a page.
    private let memory: (record: UnsafeMutableRawBufferPointer, page: UnsafeMutableRawBufferPointer)

    init(journal: Journal, database: Database, initialPages: UInt32, segment: JournalHeader.Segment) {
        self.journal = journal
        self.database = database
        self.initialPages = initialPages
        pageSize = segment.pageSize
        memory = (
            .allocate(byteCount: pageSize + 8, alignment: 16), .allocate(byteCount: pageSize, alignment: 16)
        )
    }

    func close() {
        memory.record.deallocate()
        memory.page.deallocate()
    }

    /// Returns the record at an offset; `nil` if SQLite never writes a record of that page.
    func record(at position: Int64) throws -> Record? {
        guard let bytes = try journal.lend(at: position, count: pageSize + 8, memory.record) else { return nil }
        let page = bytes.big32(0)
        guard page >= 1, page <= initialPages, page != PageGeometry.lockPage(pageSize) else { return nil }
        let content = bytes.part(JournalHeader.Segment.pageOffset, pageSize)
        return Record(
            page: page, content: content, sum: bytes.big32(pageSize + 4) &- JournalHeader.sum(content, 0))
    }

    /// Returns the initial value that two of the first three records have in common, which only records of one segment
    /// have; `nil` if there is none, or if the segment begins before `start`.
    ///
    /// A newer transaction may have overwritten the record before `start`, except for its checksum.
    func commonInitialValue(from start: Int64, _ stride: Int64) throws -> UInt32? {
        let sums = try (0..<3).map { try record(at: start + $0 * stride)?.sum }
        guard let sum = sums[1], sum == sums[0] || sum == sums[2],
            let before = try journal.read(at: start - 4, count: 4)
        else { return nil }
        return before.big32(0) &- sum <= JournalHeader.largestSum(pageSize) ? nil : sum
    }

    /// Returns whether the database contains another version of a record's page.
    func isChanged(_ record: Record, _ isSame: JournalHeader.Comparison) throws -> Bool {
        let offset = Int64(record.page - 1) * Int64(pageSize)
        guard let present = try database.lend(at: offset, count: pageSize, memory.page) else { return false }
        return try !isSame(record.page, record.content, present)
    }
}
