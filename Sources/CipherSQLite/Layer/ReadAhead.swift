/// A part of a file that was read before it was requested, because the requests were sequential.
///
/// For files that are read from beginning to end, page by page, this saves most system calls and most of their time.
// Not `Sendable`: the buffer belongs to the reader of the file, on one thread.
package final class ReadAhead {
    private static let length = 1 << 17

    private var memory: UnsafeMutableRawBufferPointer?
    private var start: Int64 = 0
    private var count = 0
    /// The offset of the end of the last bytes that were read without read-ahead.
    private var endOfLast: Int64 = -1

    package init() {}

    deinit { memory?.deallocate() }

    /// Reads bytes, and in a sequence of such calls also the bytes that follow.
    ///
    /// - Parameters:
    ///   - size: Returns the size of the file in bytes; called before more is read than was requested.
    ///   - fill: Fills a buffer from an offset on; returns `false` if the file does not have that many bytes.
    /// - Returns: The result of `fill` for these bytes. A failure to read the following bytes is not reported.
    package func read(
        at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, size: () throws -> Int64,
        _ fill: (Int64, UnsafeMutableRawBufferPointer) throws -> Bool
    ) throws -> Bool {
        if copy(offset, into: buffer) { return true }
        let follows = offset == start + Int64(count) || offset == endOfLast
        endOfLast = offset + Int64(buffer.count)
        if follows, buffer.count < Self.length {
            let length = Int(max(0, min(Int64(Self.length), try size() - offset)))
            let whole = memory ?? .allocate(byteCount: Self.length, alignment: 16)
            (memory, start, count) = (whole, offset, 0)
            if length > buffer.count, (try? fill(offset, .init(rebasing: whole[..<length]))) == true {
                count = length
                if copy(offset, into: buffer) { return true }
            }
        }
        return try fill(offset, buffer)
    }

    /// Discards the buffer, because other connections may write to the file from now on, or may have done so.
    func forget() { (count, endOfLast) = (0, -1) }

    private func copy(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        guard let memory, offset >= start, offset + Int64(buffer.count) <= start + Int64(count) else { return false }
        let from = Int(offset - start)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[from..<from + buffer.count]))
        return true
    }
}
