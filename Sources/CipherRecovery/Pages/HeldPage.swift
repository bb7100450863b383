internal import CipherSQLiteFormat

/// A page that was read, in its own memory.
final class HeldPage {
    let number: UInt32
    /// The whole page; the bytes are valid as long as this object exists.
    let bytes: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawBufferPointer

    /// Reads a page; returns `nil` if the source has no page with this number, or the page is damaged as a whole.
    ///
    /// - Throws: Any error thrown by the source.
    init?(_ number: UInt32, in source: some PageSource) throws {
        let size = source.geometry.pageSize
        guard source.geometry.mayHold(number, of: source.pageCount) else { return nil }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        do {
            guard let lent = try source.lend(number, memory), lent.count >= size else {
                memory.deallocate()
                return nil
            }
            if lent.baseAddress != UnsafeRawPointer(memory.baseAddress) {
                memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent[..<size]))
            }
        } catch {
            memory.deallocate()
            throw error
        }
        self.number = number
        self.memory = memory
        bytes = UnsafeRawBufferPointer(memory)
    }

    deinit { memory.deallocate() }

    /// Whether the page contains only zeros.
    var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
}
