internal import CCipherEngine
internal import CipherPrimitives
internal import CipherSQLite

/// Pages that are sealed and written together on another thread.
///
/// SQLite's thread fills the batch. Between ``SealingThreads/submit(_:)`` and ``SealingThreads/settle(_:)`` it belongs
/// to the thread that seals it.
// Unchecked, but thread-safe: the memory, `numbers` and `result` are accessed by one thread at a time, as described
// above, and the threads' lock orders the accesses.
final class PageBatch: @unchecked Sendable {
    static let capacity = 64

    /// The memory for the pages, which is allocated for the first page because most files have fewer pages than a
    /// batch.
    private var memory: (pages: UnsafeMutablePointer<UInt8>, sealed: UnsafeMutablePointer<UInt8>)?
    private var result = SQLITE_OK
    /// The numbers of the pages, in order of arrival.
    private(set) var numbers: [UInt32] = []

    deinit {
        memory?.pages.deallocate()
        memory?.sealed.deallocate()
    }

    private var buffers: (pages: UnsafeMutablePointer<UInt8>, sealed: UnsafeMutablePointer<UInt8>) {
        if let memory { return memory }
        let size = Self.capacity * PageSealer.pageSize
        let made = (
            pages: UnsafeMutablePointer<UInt8>.allocate(capacity: size),
            sealed: UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        )
        memory = made
        return made
    }

    var isFull: Bool { numbers.count == Self.capacity }
    var isEmpty: Bool { numbers.isEmpty }

    func page(at place: Int) -> UnsafeMutablePointer<UInt8> { buffers.pages + place * PageSealer.pageSize }

    /// Adds a page, and returns its position.
    func append(_ number: UInt32, _ content: UnsafeRawPointer) -> Int {
        let place = numbers.count
        numbers.append(number)
        replace(place, content)
        return place
    }

    func replace(_ place: Int, _ content: UnsafeRawPointer) {
        UnsafeMutableRawPointer(page(at: place)).copyMemory(from: content, byteCount: PageSealer.pageSize)
    }

    /// Removes the pages, after they were written.
    ///
    /// - Returns: SQLite's result code of a failed write, or `SQLITE_OK`.
    func reset() -> Int32 {
        numbers.removeAll(keepingCapacity: true)
        defer { result = SQLITE_OK }
        return result
    }

    /// Seals the pages and writes them.
    ///
    /// - Parameter sealer: The sealer; `nil` if there is no sealer, which is treated as a write failure.
    func seal(with sealer: PageSealer?, to disk: DescriptorFile) {
        result = sealer.map { write(sealedBy: $0, to: disk) } ?? DescriptorFile.writeFailure
    }

    private func write(sealedBy sealer: PageSealer, to disk: DescriptorFile) -> Int32 {
        var vectors = [UInt8](repeating: 0, count: numbers.count * PageSealer.vectorSize)
        guard vectors.withUnsafeMutableBytes(Cryptography.randomize) else { return DescriptorFile.writeFailure }
        // The pages are sorted in file order, so that adjacent pages are written together.
        let places = numbers.indices.sorted { numbers[$0] < numbers[$1] }
        let areSealed = vectors.withUnsafeBufferPointer { vectors in
            vectors.baseAddress.map { vectors in
                sealer.seal(
                    places.enumerated().map { slot, place in
                        PageSealer.Page(
                            content: page(at: place), number: numbers[place],
                            vector: vectors + slot * PageSealer.vectorSize,
                            sealed: buffers.sealed + slot * PageSealer.pageSize)
                    })
            }
        }
        guard areSealed == true else { return DescriptorFile.writeFailure }
        var start = 0
        for slot in 1...places.count {
            if slot < places.count, numbers[places[slot]] == numbers[places[slot - 1]] + 1 { continue }
            let result = disk.write(
                buffers.sealed + start * PageSealer.pageSize, count: (slot - start) * PageSealer.pageSize,
                page: numbers[places[start]])
            guard result == SQLITE_OK else { return result }
            start = slot
        }
        return SQLITE_OK
    }
}
