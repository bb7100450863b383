internal import CipherErrors
internal import CipherSystemFiles

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The bytes of a `-wal` or `-journal`, which SQLite never locks, so that it may be opened here.
package final class SidecarFile {
    package let path: String
    package let size: Int64
    private let descriptor: Int32

    // A FIFO that takes the file's place must not hold up whoever opens it.
    private static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

    /// `nil` where there is none, or an empty one.
    ///
    /// Opened before it is looked at: whoever closes the last connection removes it, at any moment.
    package init?(_ path: String) throws {
        #if canImport(Glibc)
            let descriptor = path.withSystemPath { Glibc.open($0, Self.flags) }
        #elseif canImport(Musl)
            let descriptor = path.withSystemPath { Musl.open($0, Self.flags) }
        #else
            let descriptor = path.withSystemPath { Darwin.open($0, Self.flags) }
        #endif
        guard descriptor >= 0 else {
            // A socket cannot be opened, and is no regular file either.
            if errno == ENOENT || errno == ENXIO { return nil }
            throw FileSystem.failure("be opened", path)
        }
        do {
            let status = try FileSystem.status(ofDescriptor: descriptor, path)
            guard status.isRegular, status.size > 0 else {
                close(descriptor)
                return nil
            }
            size = status.size
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// `nil` where the file ends before.
    package func read(at offset: Int64, count: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return try read(at: offset, into: &bytes) ? bytes : nil
    }

    /// Fills a buffer, and tells whether the file went so far.
    package func read(at offset: Int64, into buffer: inout [UInt8]) throws -> Bool {
        let result = pread(descriptor, &buffer, buffer.count, off_t(offset))
        guard result >= 0 else { throw FileSystem.failure("be read", path) }
        return result == buffer.count
    }
}

/// What a `-journal` begins with.
///
/// Source: SQLite, "Database File Format", section 3.
package struct JournalHeader {
    package static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

    /// Whether SQLite would play the journal back.
    package let isHot: Bool
    /// The size of the database before the transaction, in pages.
    package let initialPages: UInt32
    package let sector: Int64
    /// 0 in journals of SQLite before 3.5.8.
    package let pageSize: Int

    package init?(_ file: SidecarFile) throws {
        guard let bytes = try file.read(at: 0, count: 28) else { return nil }
        isHot = bytes.starts(with: Self.magic)
        initialPages = bytes.big32(16)
        sector = Int64(bytes.big32(20))
        pageSize = Int(bytes.big32(24))
    }

    package var isSectorSize: Bool { (32...65536).contains(sector) && sector & (sector - 1) == 0 }
}

/// What a `-wal` begins with.
///
/// Source: SQLite, "WAL-mode File Format".
package struct LogHeader {
    package static let length = 32
    package static let frameHeaderLength = 24

    package let pageSize: Int
    /// What each frame repeats; SQLite reads no further than it does.
    package let salt: [UInt8]
    /// The sum of the header, with which the sums of the frames go on.
    fileprivate let sum: LogChecksum

    /// Whether the first four bytes, which must be there, are a log's.
    package static func begins(_ bytes: [UInt8]) -> Bool { bytes.big32(0) & ~1 == 0x377f_0682 }

    /// `nil` for what SQLite takes for no log.
    package init?(_ file: SidecarFile) throws {
        guard let bytes = try file.read(at: 0, count: Self.length) else { return nil }
        pageSize = Int(bytes.big32(8))
        guard Self.begins(bytes), pageSize.isPageSize else { return nil }
        salt = Array(bytes[16..<24])
        sum = LogChecksum(isBigEndian: bytes[3] & 1 == 1, first: bytes.big32(24), second: bytes.big32(28))
    }

    /// From one frame to the next.
    package var stride: Int64 { Int64(Self.frameHeaderLength + pageSize) }

    /// The largest size that a commit in the log gives the database, in pages.
    package func pagesAtCommit(in log: SidecarFile) throws -> UInt32 {
        var most: UInt32 = 0
        try forEachFrame(of: log) { most = max(most, $0.pagesAtCommit) }
        return most
    }

    /// Whether one of these pages is not in the log.
    package func lacks(pagesFrom first: Int, to last: Int, in log: SidecarFile) throws -> Bool {
        var missing = Set(first...last)
        // SQLite keeps its locks there, and no page. Source: "Database File Format", section 1.5.
        missing.remove(0x4000_0000 / pageSize + 1)
        try forEachFrame(of: log) { missing.remove(Int($0.page)) }
        return !missing.isEmpty
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
        of log: SidecarFile, checksSums: Bool = false, _ body: (Frame) throws -> Void
    ) throws {
        var frame = [UInt8](repeating: 0, count: checksSums ? Int(stride) : Self.frameHeaderLength)
        var position = Int64(Self.length)
        var sum = sum
        while position + stride <= log.size, try log.read(at: position, into: &frame),
            frame[8..<16].elementsEqual(salt)
        {
            if checksSums {
                sum.add(frame[..<8])
                sum.add(frame[Self.frameHeaderLength...])
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
private struct LogChecksum {
    let isBigEndian: Bool
    var first: UInt32
    var second: UInt32

    /// Adds bytes, eight at a time.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { words in
            for offset in stride(from: 0, to: words.count - 7, by: 8) {
                let one = words.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                let two = words.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                first &+= (isBigEndian ? UInt32(bigEndian: one) : UInt32(littleEndian: one)) &+ second
                second &+= (isBigEndian ? UInt32(bigEndian: two) : UInt32(littleEndian: two)) &+ first
            }
        }
    }
}

extension Int {
    /// Whether SQLite knows pages of this size.
    package var isPageSize: Bool { (512...65536).contains(self) && self & (self - 1) == 0 }
}

extension [UInt8] {
    /// The number in four bytes, the highest first, all of which there must be.
    package func big32(_ offset: Int) -> UInt32 { self[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
}
