internal import CipherSQLiteFormat

/// A page that was read, in memory of its own.
final class HeldPage {
    let number: UInt32
    /// The whole page; it lasts as long as this object.
    let bytes: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawBufferPointer

    /// Reads a page; `nil` if the source has none of this number, or one that is damaged as a whole.
    ///
    /// - Throws: What the source throws.
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

    /// Whether there is nothing but zeros on it.
    var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
}
