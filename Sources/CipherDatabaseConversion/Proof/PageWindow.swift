internal import CipherPageOpening
internal import CipherPlatform
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Consecutive pages of an encrypted file, in encrypted form.
// Not `Sendable`: used by one thread.
final class PageWindow: PageSource {
    static let capacity = 256

    let geometry: PageGeometry
    private let memory: UnsafeMutableRawBufferPointer
    private var first: UInt32 = 1
    private var count: UInt32 = 0

    /// Creates an empty window of a file with these settings.
    ///
    /// - Returns: `nil` for a page size that SQLite does not support.
    init?(_ settings: CipherSettings) {
        guard let geometry = PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes) else {
            return nil
        }
        self.geometry = geometry
        memory = .allocate(byteCount: Self.capacity * geometry.pageSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// The number of the last page in the window.
    var pageCount: UInt32 { first + count - 1 }

    /// Reads pages into the window.
    ///
    /// - Parameters:
    ///   - pages: At most ``capacity`` pages.
    ///   - fill: Fills a buffer from an offset on. It returns `false` if the file ends before the buffer is full.
    /// - Returns: Whether the file has all of these pages.
    func fill(
        _ pages: Range<UInt32>, _ fill: (UnsafeMutableRawBufferPointer, Int64) throws -> Bool
    ) throws -> Bool {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: memory[..<(pages.count * geometry.pageSize)])
        (first, count) = (pages.lowerBound, 0)
        guard try fill(buffer, Int64(first - 1) * Int64(geometry.pageSize)) else { return false }
        count = UInt32(pages.count)
        return true
    }

    func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer? {
        contains(page) ? bytes(of: page) : nil
    }

    /// The mark that distinguishes the current version of a page, which must be in the window, from every other
    /// version.
    subscript(page: UInt32) -> PageMark {
        let bytes = bytes(of: page)
        let start = geometry.pageSize - PageMark.distance
        return PageMark(
            first: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self),
            second: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self))
    }

    /// Returns whether a page, which must be in the window, contains only zeros, which means that it has not been
    /// written yet.
    func isUnwritten(_ page: UInt32) -> Bool {
        guard self[page] == .unwritten else { return false }
        let bytes = bytes(of: page)
        // Each byte equals the next, and the first is 0.
        return bytes[0] == 0
            && UnsafeRawBufferPointer(rebasing: bytes.dropFirst()).equals(
                UnsafeRawBufferPointer(rebasing: bytes.dropLast()))
    }

    private func contains(_ page: UInt32) -> Bool { page >= first && page - first < count }

    private func bytes(of page: UInt32) -> UnsafeRawBufferPointer {
        let start = Int(page - first) * geometry.pageSize
        return UnsafeRawBufferPointer(rebasing: memory[start..<start + geometry.pageSize])
    }
}

/// A part of the HMAC of a sealed page.
///
/// The HMAC covers the encrypted content, the initialization vector and the page's number, so a page with the same HMAC
/// has the same content. A checkpoint copies pages unchanged.
/// Source: SQLCipher Design, "Database Encryption and Decryption" and "Per-Page MAC".
struct PageMark: Equatable {
    let first: UInt64
    let second: UInt64

    /// The distance of the mark from the end of the page.
    ///
    /// The mark begins where the HMAC begins.
    static let distance = 64
    /// The mark of a page that has not been written yet.
    static let unwritten = PageMark(first: 0, second: 0)
}

extension UnsafeRawBufferPointer {
    /// Returns whether both buffers contain the same bytes.
    func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        guard let start = baseAddress, let otherStart = other.baseAddress, count == other.count else { return false }
        return memcmp(start, otherStart, count) == 0
    }
}
