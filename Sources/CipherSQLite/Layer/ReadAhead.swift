/// A part of a file that was read before it was asked for, because what was asked for followed what had been read.
///
/// For files that are read from one end to the other, a page at a time: most calls of the system go, and most of its time.
// Not `Sendable`: whoever reads the file has it, on one thread.
package final class ReadAhead {
    private static let length = 1 << 17

    private var memory: UnsafeMutableRawBufferPointer?
    private var start: Int64 = 0
    private var count = 0
    /// Where the bytes end that were read last without those behind them.
    private var endOfLast: Int64 = -1

    package init() {}

    deinit { memory?.deallocate() }

    /// Reads bytes, and in a row of such calls those that follow.
    ///
    /// - Parameters:
    ///   - size: That of the file, in bytes; asked for before more is read than was asked for.
    ///   - fill: Fills a buffer from an offset on; `false` if the file has not as many bytes.
    /// - Returns: What `fill` says of these bytes. Of those behind them nothing is said where they cannot be read.
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

    /// Forgets what was read: others may write the file from now on, or may have.
    func forget() { (count, endOfLast) = (0, -1) }

    private func copy(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        guard let memory, offset >= start, offset + Int64(buffer.count) <= start + Int64(count) else { return false }
        let from = Int(offset - start)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[from..<from + buffer.count]))
        return true
    }
}
