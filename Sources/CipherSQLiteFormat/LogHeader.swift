/// What a `-wal` begins with.
///
/// Source: SQLite, "WAL-mode File Format".
package struct LogHeader {
    package static let length = 32
    package static let frameHeaderLength = 24

    package let pageSize: Int
    /// What each frame repeats; SQLite reads no further than it does.
    package let salt: [UInt8]
    /// Whether the header's own sum is right: else SQLite reads nothing of the log.
    package let isWhole: Bool
    /// The sum of the header, with which the sums of the frames go on.
    private let sum: LogChecksum

    /// Whether the first four bytes, which must be there, are a log's.
    package static func begins(_ bytes: [UInt8]) -> Bool { bytes.big32(0) & ~1 == 0x377f_0682 }

    /// `nil` for what SQLite takes for no log.
    package init?(_ log: some ByteSource) throws {
        guard let bytes = try log.read(at: 0, count: Self.length) else { return nil }
        pageSize = Int(bytes.big32(8))
        guard Self.begins(bytes), pageSize.isPageSize else { return nil }
        salt = Array(bytes[16..<24])
        sum = LogChecksum(isBigEndian: bytes[3] & 1 == 1, first: bytes.big32(24), second: bytes.big32(28))
        var computed = LogChecksum(isBigEndian: sum.isBigEndian, first: 0, second: 0)
        bytes.withUnsafeBytes { computed.add($0.part(0, 24)) }
        // The version of the format that SQLite has had since it has logs.
        isWhole = computed == sum && bytes.big32(4) == 3_007_000
    }

    /// From one frame to the next.
    package var stride: Int64 { Int64(Self.frameHeaderLength + pageSize) }

    /// The largest size that a commit in the log gives the database, in pages.
    package func pagesAtCommit(in log: some ByteSource) throws -> UInt32 {
        var most: UInt32 = 0
        try forEachFrame(of: log) { most = max(most, $0.pagesAtCommit) }
        return most
    }

    /// Whether one of these pages is not in the log.
    package func lacks(pagesFrom first: Int, to last: Int, in log: some ByteSource) throws -> Bool {
        var missing = Set(first...last)
        missing.remove(Int(PageGeometry.lockPage(pageSize)))
        try forEachFrame(of: log) { missing.remove(Int($0.page)) }
        return !missing.isEmpty
    }

    /// The newest form of each page that a transaction in the log has ended with; `nil` where none has ended.
    ///
    /// Frames count while their salts and sums are right, up to the last that ends a transaction, as they do for SQLite.
    package func committedPages(in log: some ByteSource) throws -> PageVersions? {
        guard isWhole else { return nil }
        var (committed, pageCount): ([UInt32: Int64], UInt32) = ([:], 0)
        var pending: [Frame] = []
        try forEachFrame(of: log, checksSums: true) { frame in
            pending.append(frame)
            guard frame.pagesAtCommit > 0 else { return }
            for frame in pending { committed[frame.page] = frame.offset }
            pending.removeAll(keepingCapacity: true)
            pageCount = frame.pagesAtCommit
        }
        return pageCount == 0 ? nil : PageVersions(pageSize: pageSize, pageCount: pageCount, offsets: committed)
    }

    /// One page in the log.
    package struct Frame {
        /// The number of the page, from 1.
        package let page: UInt32
        /// The size of the database in pages, where the frame ends a transaction; else 0.
        package let pagesAtCommit: UInt32
        /// Where in the log the page begins.
        package let offset: Int64
    }

    /// Lends each frame that has the log's salt.
    ///
    /// - Parameter checksSums: Whether the sums are checked too, for which all pages are read: behind the last transaction
    ///   there may be frames of one that was rolled back.
    package func forEachFrame(
        of log: some ByteSource, checksSums: Bool = false, _ body: (Frame) throws -> Void
    ) throws {
        let count = checksSums ? Int(stride) : Self.frameHeaderLength
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { memory.deallocate() }
        var position = Int64(Self.length)
        var sum = sum
        while position <= log.size - stride, let frame = try log.lend(at: position, count: count, memory),
            frame.part(8, 8).elementsEqual(salt), frame.big32(0) != 0
        {
            if checksSums {
                sum.add(frame.part(0, 8))
                sum.add(frame.part(Self.frameHeaderLength, pageSize))
                guard sum.first == frame.big32(16), sum.second == frame.big32(20) else { return }
            }
            try body(
                Frame(
                    page: frame.big32(0), pagesAtCommit: frame.big32(4),
                    offset: position + Int64(Self.frameHeaderLength)))
            position += stride
        }
    }
}

/// The running sum over a log.
///
/// Source: SQLite, "WAL-mode File Format", section 4.2.
private struct LogChecksum: Equatable {
    let isBigEndian: Bool
    var first: UInt32
    var second: UInt32

    /// Adds bytes, eight at a time.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
            let (one, two) = (bytes.big32(offset), bytes.big32(offset + 4))
            first &+= (isBigEndian ? one : one.byteSwapped) &+ second
            second &+= (isBigEndian ? two : two.byteSwapped) &+ first
        }
    }
}
