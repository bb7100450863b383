/// The header of a `-wal` file.
///
/// Source: SQLite, "WAL-mode File Format".
package struct LogHeader {
    package static let length = 32
    package static let frameHeaderLength = 24

    package let pageSize: Int
    /// The salt that each frame repeats; SQLite stops at the first frame that has another salt.
    package let salt: [UInt8]
    /// Whether the header's own checksum and format version are correct; otherwise SQLite reads nothing from the log.
    package let isWhole: Bool
    /// The checksum of the header, from which the checksums of the frames continue.
    private let sum: LogChecksum

    /// Returns whether the first four bytes, which must exist, are those of a log.
    package static func begins(_ bytes: [UInt8]) -> Bool { bytes.big32(0) & ~1 == 0x377f_0682 }

    /// Reads the header of a log; returns `nil` if SQLite would not recognize the bytes as a log.
    package init?(_ log: some ByteSource) throws {
        guard let bytes = try log.read(at: 0, count: Self.length) else { return nil }
        pageSize = Int(bytes.big32(8))
        guard Self.begins(bytes), pageSize.isPageSize else { return nil }
        salt = Array(bytes[16..<24])
        sum = LogChecksum(isBigEndian: bytes[3] & 1 == 1, first: bytes.big32(24), second: bytes.big32(28))
        var computed = LogChecksum(isBigEndian: sum.isBigEndian, first: 0, second: 0)
        bytes.withUnsafeBytes { computed.add($0.part(0, 24)) }
        // The format version that SQLite has used since it introduced the write-ahead log.
        isWhole = computed == sum && bytes.big32(4) == 3_007_000
    }

    /// The distance from one frame to the next.
    package var stride: Int64 { Int64(Self.frameHeaderLength + pageSize) }

    /// Returns the largest size of the database after any commit in the log, in pages.
    package func pagesAtCommit(in log: some ByteSource) throws -> UInt32 {
        var most: UInt32 = 0
        try forEachFrame(of: log) { most = max(most, $0.pagesAtCommit) }
        return most
    }

    /// Returns whether any of these pages is missing from the log.
    package func lacks(pagesFrom first: Int, to last: Int, in log: some ByteSource) throws -> Bool {
        let (pages, lockPage) = (first...last, Int(PageGeometry.lockPage(pageSize)))
        // Anyone can state a number of pages, but the log is as long as the pages in it.
        var found: Set<UInt32> = []
        try forEachFrame(of: log) { frame in
            if pages.contains(Int(frame.page)), frame.page != lockPage { found.insert(frame.page) }
        }
        return found.count < pages.count - (pages.contains(lockPage) ? 1 : 0)
    }

    /// Returns the newest version of each page from the committed transactions in the log; `nil` if no transaction was
    /// committed.
    ///
    /// As in SQLite, frames are valid as long as their salts and checksums are correct, up to the last frame that ends
    /// a transaction.
    ///
    /// - Parameter isValid: Returns whether the frames up to this one are valid for another reason.
    package func committedPages(
        in log: some ByteSource, while isValid: (Frame) throws -> Bool = { _ in true }
    ) throws -> PageVersions? {
        guard isWhole else { return nil }
        var committed: [UInt32: Int64] = [:]
        var pageCount: UInt32 = 0
        var pending: [Frame] = []
        var isCut = false
        try forEachFrame(of: log, checksSums: true) { frame in
            guard !isCut, try isValid(frame) else { return isCut = true }
            pending.append(frame)
            guard frame.pagesAtCommit > 0 else { return }
            for frame in pending { committed[frame.page] = frame.offset }
            pending.removeAll(keepingCapacity: true)
            pageCount = frame.pagesAtCommit
        }
        return pageCount > 0 ? PageVersions(pageSize: pageSize, pageCount: pageCount, offsets: committed) : nil
    }

    // MARK: Lost commits

    /// Returns whether a log holds commits that SQLite does not read, because an earlier part of the log is damaged.
    ///
    /// The result is reliable only while no connection uses the log.
    package static func losesCommits(_ log: some ByteSource) throws -> Bool { try startOfLostPart(of: log) != nil }

    /// Returns the offset from which SQLite does not read a log, if the log holds commits after this offset.
    ///
    /// SQLite reads a log only up to the first frame whose salt or checksum is wrong, and nothing if the header is
    /// damaged. A killed process or a power loss can leave such a frame too, in a transaction that was never committed.
    /// A writer begins a transaction only after the previous one has been completed. Therefore, a log has lost commits
    /// if it holds the end of another transaction after the one at which SQLite stops. One such end is sufficient in two
    /// cases: after a damaged header, because a header is completed before the first frame is written, and after a frame
    /// without a salt. SQLite leaves such a frame in a committed transaction if a statement was undone (see
    /// docs/RELIABILITY.md, "Undone statements in large transactions").
    ///
    /// Frames from before a reset have another salt. Frames of a transaction that was rolled back do not end one.
    package static func startOfLostPart(of log: some ByteSource) throws -> Int64? {
        if let header = try LogHeader(log), header.isWhole {
            var end = Int64(Self.length)
            try header.forEachFrame(of: log, checksSums: true) { end = $0.offset + Int64(header.pageSize) }
            let stop = try log.read(at: end, count: 16) ?? []
            let isUnsealed = stop.prefix(4).contains { $0 != 0 } && stop.suffix(8).allSatisfy { $0 == 0 }
            let commits = try frames(of: log, from: end, pageSize: header.pageSize, salt: header.salt).commits
            return commits > (isUnsealed ? 0 : 1) ? end : nil
        }
        guard let start = try log.read(at: 0, count: Self.length + Self.frameHeaderLength) else { return nil }
        let salt = Array(start[40..<48])
        let hasSalt = start[16..<24].elementsEqual(salt)
        // The page size in the header may be wrong.
        let isLost = try (9...16).contains { exponent in
            let found = try frames(of: log, from: Int64(Self.length), pageSize: 1 << exponent, salt: salt)
            return found.commits > 0 && (hasSalt || found.count > 1)
        }
        return isLost ? 0 : nil
    }

    /// Returns the number of frames with this salt, and how many of them end a transaction.
    private static func frames(
        of log: some ByteSource, from first: Int64, pageSize: Int, salt: [UInt8]
    ) throws -> (count: Int, commits: Int) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: frameHeaderLength, alignment: 16)
        defer { memory.deallocate() }
        let stride = Int64(frameHeaderLength + pageSize)
        var (position, blanks) = (first, 0)
        var found = (count: 0, commits: 0)
        // A file may consist of a terabyte of zeros, and need not be read to its end.
        while blanks < 64, position <= log.size - stride,
            let frame = try log.lend(at: position, count: frameHeaderLength, memory)
        {
            blanks = frame.big32(0) == 0 ? blanks + 1 : 0
            if frame.big32(0) != 0, frame.part(8, 8).elementsEqual(salt) {
                found.count += 1
                if frame.big32(4) > 0 { found.commits += 1 }
            }
            position += stride
        }
        return found
    }

    /// The end of a transaction in a log.
    package struct TransactionEnd: Equatable, Sendable {
        fileprivate let salt: [UInt8]
        /// The number of the transaction's last frame, from 1.
        package let frame: Int
        /// The salt and the checksum in the last frame's header.
        fileprivate let seal: [UInt8]
        /// The size of the database at the end of the transaction, in pages.
        package let pageCount: UInt32

        /// Returns whether the transaction is in the log with this header, and not in an earlier log of the same name.
        package func isIn(_ log: LogHeader) -> Bool { salt == log.salt }
    }

    /// Returns the transaction that ends with a frame that SQLite reports as committed.
    ///
    /// - Returns: `nil` if the log does not contain these frames.
    package func end(at frame: Int, pageCount: UInt32, in log: some ByteSource) throws -> TransactionEnd? {
        guard frame > 0, let header = try log.read(at: offset(of: frame), count: Self.frameHeaderLength) else {
            return nil
        }
        return TransactionEnd(salt: salt, frame: frame, seal: Array(header[8..<24]), pageCount: pageCount)
    }

    /// Returns whether a log with this number of frames contains a transaction of an earlier launch, and everything
    /// before it is unchanged.
    ///
    /// A frame's checksum, if SQLite has computed it, depends on everything before the frame in the log.
    package func holds(_ end: TransactionEnd, frameCount: Int, in log: some ByteSource) throws -> Bool {
        guard end.isIn(self), end.seal.prefix(8).elementsEqual(salt), end.frame <= frameCount else { return false }
        return try self.end(at: end.frame, pageCount: end.pageCount, in: log) == end
    }

    /// Returns the offset in the log of the newest version of each page in a range of frames.
    ///
    /// - Parameters:
    ///   - frames: The numbers of the frames, which SQLite reports as committed.
    /// - Returns: `nil` if the log does not contain these frames.
    package func pages(of frames: Range<Int>, in log: some ByteSource) throws -> [UInt32: Int64]? {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.frameHeaderLength, alignment: 16)
        defer { memory.deallocate() }
        var pages: [UInt32: Int64] = [:]
        for frame in frames {
            let offset = offset(of: frame)
            guard offset + stride <= log.size,
                let header = try log.lend(at: offset, count: Self.frameHeaderLength, memory)
            else { return nil }
            pages[header.big32(0)] = offset + Int64(Self.frameHeaderLength)
        }
        return pages
    }

    private func offset(of frame: Int) -> Int64 { Int64(Self.length) + Int64(frame - 1) * stride }

    /// One page in the log.
    package struct Frame {
        /// The number of the page, from 1.
        package let page: UInt32
        /// The size of the database in pages if the frame ends a transaction; otherwise 0.
        package let pagesAtCommit: UInt32
        /// The offset in the log at which the page begins.
        package let offset: Int64
    }

    /// Lends each frame to the closure, up to the first frame that does not have the log's salt.
    ///
    /// - Parameters:
    ///   - checksSums: Whether to check the checksums too, which reads all pages. After the last transaction, frames of
    ///     a transaction that was rolled back may follow.
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

extension LogHeader.TransactionEnd {
    /// The transaction's end as text, for another process.
    package var text: String {
        let numbers = [Self.number(salt[...]), UInt64(frame), Self.number(seal[8...]), UInt64(pageCount)]
        return numbers.map { String($0, radix: 16) }.joined(separator: ".")
    }

    /// Reads the text of a transaction's end; returns `nil` for any other text.
    package init?(text: String) {
        let numbers = text.split(separator: ".").compactMap { UInt64($0, radix: 16) }
        guard numbers.count == 4, let frame = Int(exactly: numbers[1]), frame > 0, frame < 1 << 32,
            let pageCount = UInt32(exactly: numbers[3])
        else { return nil }
        salt = Self.bytes(numbers[0])
        self.frame = frame
        seal = salt + Self.bytes(numbers[2])
        self.pageCount = pageCount
    }

    /// Whether the frame has a checksum, by which another process can recognize it.
    package var isSealed: Bool { seal.prefix(8).elementsEqual(salt) }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
}

/// The running checksum of a log.
///
/// Source: SQLite, "WAL-mode File Format", section 4.2.
private struct LogChecksum: Equatable, Sendable {
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
