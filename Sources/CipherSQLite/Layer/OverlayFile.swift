internal import CCipherEngine
internal import CipherErrors

/// A limit on how much of a database may be changed in memory.
final class OverlayBudget {
    /// The number of bytes left.
    private var left: Int
    private var isEnded = false
    /// Whether more bytes than the limit were requested.
    private(set) var isExceeded = false

    init(_ bytes: Int) {
        left = bytes
    }

    func take(_ bytes: Int) -> Bool {
        guard bytes <= left else {
            isExceeded = true
            return false
        }
        left -= bytes
        return true
    }

    func give(_ bytes: Int) {
        if !isEnded { left += bytes }
    }

    /// Prevents further changes.
    func end() { (left, isEnded) = (0, true) }
}

/// A file whose changes stay in memory.
///
/// Unchanged bytes are read from the underlying file, which is never written to.
final class OverlayFile: LayeredFile {
    private static let blockSize = 4096

    /// Another connection's file, which must stay open as long as this one; `nil` for an empty file.
    private let base: UnsafeMutablePointer<sqlite3_file>?
    private let budget: OverlayBudget
    private var blocks: [Int64: UnsafeMutableRawPointer] = [:]
    private var size: Int64 = 0
    /// The length of the underlying file that is still visible.
    private var baseSize: Int64 = 0

    init(over base: UnsafeMutablePointer<sqlite3_file>?, _ budget: OverlayBudget) throws {
        self.base = base
        self.budget = budget
        guard let base else { return }
        let result = base.pointee.pMethods.pointee.xFileSize(base, &size)
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: "the size of the file could not be read")
        }
        baseSize = size
    }

    deinit {
        for block in blocks.values { block.deallocate() }
        budget.give(blocks.count * Self.blockSize)
    }

    func getSize(_ size: inout Int64) -> Int32 {
        size = self.size
        return SQLITE_OK
    }

    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        if blocks.isEmpty, offset + Int64(count) <= baseSize { return readBase(into: buffer, count, offset) }
        var done = 0
        while done < count {
            let (block, start, length) = part(at: offset + Int64(done), of: count - done)
            if let content = blocks[block] {
                (buffer + done).copyMemory(from: content + start, byteCount: length)
            } else {
                let result = readBase(into: buffer + done, length, offset + Int64(done))
                guard result == SQLITE_OK else { return result }
            }
            done += length
        }
        return offset + Int64(count) > size ? DescriptorFile.shortRead : SQLITE_OK
    }

    func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        var done = 0
        while done < count {
            let (block, start, length) = part(at: offset + Int64(done), of: count - done)
            if blocks[block] == nil {
                guard budget.take(Self.blockSize) else { return SQLITE_FULL }
                let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.blockSize, alignment: 16)
                let result = readBase(into: memory, Self.blockSize, block * Int64(Self.blockSize))
                guard result == SQLITE_OK else {
                    memory.deallocate()
                    return result
                }
                blocks[block] = memory
            }
            blocks[block]?.advanced(by: start).copyMemory(from: content + done, byteCount: length)
            done += length
        }
        size = max(size, offset + Int64(count))
        return SQLITE_OK
    }

    func truncate(to newSize: Int64) -> Int32 {
        let (last, start, _) = part(at: newSize, of: 1)
        for (block, content) in blocks where block >= last {
            guard block == last, start > 0 else {
                content.deallocate()
                budget.give(Self.blockSize)
                blocks[block] = nil
                continue
            }
            (content + start).initializeMemory(as: UInt8.self, repeating: 0, count: Self.blockSize - start)
        }
        size = min(size, newSize)
        baseSize = min(baseSize, newSize)
        return SQLITE_OK
    }

    func sync() -> Int32 { SQLITE_OK }
    func close() -> Int32 { SQLITE_OK }

    private func part(at offset: Int64, of count: Int) -> (block: Int64, start: Int, length: Int) {
        let start = Int(offset % Int64(Self.blockSize))
        return (offset / Int64(Self.blockSize), start, min(count, Self.blockSize - start))
    }

    /// Reads the bytes of the underlying file, and zeros beyond its end.
    private func readBase(into buffer: UnsafeMutableRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
        let available = base == nil ? 0 : Int(max(0, min(Int64(count), baseSize - offset)))
        (buffer + available).initializeMemory(as: UInt8.self, repeating: 0, count: count - available)
        guard available > 0, let base else { return SQLITE_OK }
        return base.pointee.pMethods.pointee.xRead(base, buffer, Int32(available), offset)
    }
}
