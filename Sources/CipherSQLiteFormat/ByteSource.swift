internal import CipherSQLite

/// A source of bytes: a file, or memory.
package protocol ByteSource {
    /// The size in bytes.
    var size: Int64 { get }

    /// Lends bytes: the source's own, or `scratch` filled with them.
    ///
    /// The bytes are valid as long as the source exists and `scratch` is not used for other bytes.
    ///
    /// - Parameters:
    ///   - offset: The offset of the first byte, at least 0.
    ///   - scratch: Memory for at least `count` bytes.
    /// - Returns: The bytes; `nil` if the source ends first.
    /// - Throws: The error that prevents the source from reading.
    func lend(at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer?
}

extension ByteSource {
    /// Returns a copy of bytes; `nil` if the source ends first.
    package func read(at offset: Int64, count: Int) throws -> [UInt8]? {
        guard offset >= 0, count >= 0, Int64(count) <= size, offset <= size - Int64(count) else { return nil }
        var found = true
        let bytes = try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let scratch = UnsafeMutableRawBufferPointer(buffer)
            guard let bytes = try lend(at: offset, count: count, scratch) else { return found = false }
            if bytes.baseAddress != UnsafeRawPointer(scratch.baseAddress) { scratch.copyMemory(from: bytes) }
            initialized = count
        }
        return found ? bytes : nil
    }
}

/// Bytes in memory that are not moved while they are being read.
package struct MemoryBytes: ByteSource {
    @usableFromInline let bytes: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    @inlinable package var size: Int64 { Int64(bytes.count) }

    @inlinable package func lend(
        at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        guard offset >= 0, offset <= size - Int64(count) else { return nil }
        return bytes.part(Int(offset), count)
    }
}

/// Bytes that a closure reads, with read-ahead.
// Copies share the read-ahead buffer, so all of them belong to one thread.
package struct ReadBytes: ByteSource {
    package let size: Int64
    private let fill: (Int64, UnsafeMutableRawBufferPointer) throws -> Bool
    private let ahead = ReadAhead()

    /// Creates a source.
    ///
    /// - Parameter fill: Fills the buffer with the bytes from an offset on; returns `false` if the bytes end first.
    package init(size: Int64, _ fill: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Bool) {
        self.size = size
        self.fill = fill
    }

    package func lend(
        at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer
    ) throws -> UnsafeRawBufferPointer? {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])
        return try ahead.read(at: offset, into: buffer, size: { size }, fill) ? UnsafeRawBufferPointer(buffer) : nil
    }
}
