internal import CCipherEngine
internal import CipherPrimitives
internal import CipherSQLite

/// Pages on their way to the disk, sealed and written together on another thread.
///
/// Filled by SQLite's thread. Between ``SealingThreads/submit(_:)`` and ``SealingThreads/settle(_:)`` it belongs to the thread
/// that seals it.
// Unchecked, and safe between threads: the memory, `numbers` and `result` are touched by one at a time, as said above, and
// the threads' lock orders them.
final class PageBatch: @unchecked Sendable {
    static let capacity = 64

    /// Made for the first page: most files have fewer pages than there is room for in one batch.
    private var memory: (pages: UnsafeMutablePointer<UInt8>, sealed: UnsafeMutablePointer<UInt8>)?
    private var result = SQLITE_OK
    /// The numbers of the pages, in the order of their arrival.
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

    /// Takes a page in, and returns its place.
    func append(_ number: UInt32, _ content: UnsafeRawPointer) -> Int {
        let place = numbers.count
        numbers.append(number)
        replace(place, content)
        return place
    }

    func replace(_ place: Int, _ content: UnsafeRawPointer) {
        UnsafeMutableRawPointer(page(at: place)).copyMemory(from: content, byteCount: PageSealer.pageSize)
    }

    /// Forgets the pages, which are written.
    ///
    /// Returns SQLite's code of the failure to write them, or `SQLITE_OK`.
    func reset() -> Int32 {
        numbers.removeAll(keepingCapacity: true)
        defer { result = SQLITE_OK }
        return result
    }

    /// Seals the pages and writes them.
    ///
    /// - Parameter sealer: `nil` where there is none, which is a failure to write.
    func seal(with sealer: PageSealer?, to disk: DescriptorFile) {
        result = sealer.map { write(sealedBy: $0, to: disk) } ?? DescriptorFile.writeFailure
    }

    private func write(sealedBy sealer: PageSealer, to disk: DescriptorFile) -> Int32 {
        var vectors = [UInt8](repeating: 0, count: numbers.count * PageSealer.vectorSize)
        guard vectors.withUnsafeMutableBytes(Cryptography.randomize) else { return DescriptorFile.writeFailure }
        // In the order of the file, so that neighbours are written at once.
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
