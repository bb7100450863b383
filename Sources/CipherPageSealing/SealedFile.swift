internal import CCipherEngine
internal import CipherSQLite

/// A database file that SQLite writes as plaintext pages and that is stored sealed.
///
/// It is used by one thread, SQLite's. Full batches of pages are sealed and written on other threads. If a page is
/// needed again, it is taken from the batch that is being filled, or SQLite's thread waits for the page's batch, reads
/// the page and opens it.
final class SealedFile: LayeredFile {
    /// The number of batches: each core has a batch to seal while another is filled, but little memory is used.
    private static let batchCount = 16

    private let disk: DescriptorFile
    private let batches: [PageBatch]
    private let sealer: PageSealer
    private let threads: SealingThreads
    /// The batch that is being filled.
    private var current = 0
    /// The locations of the pages that may not have been written yet.
    private var places: [UInt32: (batch: Int, place: Int)] = [:]
    private var size: Int64
    /// The first failure; SQLite does not check every result.
    private(set) var failure = SQLITE_OK

    init(
        _ disk: DescriptorFile, _ keys: SealingKeys, _ startThread: @escaping SealingThreads.ThreadStart
    ) throws {
        self.disk = disk
        threads = SealingThreads(disk, keys, startThread)
        batches = (0..<Self.batchCount).map { _ in PageBatch() }
        sealer = try PageSealer(keys)
        size = 0
        failure = disk.getSize(&size)
    }

    func getSize(_ size: inout Int64) -> Int32 {
        size = self.size
        return SQLITE_OK
    }

    // MARK: Writing

    func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        guard failure == SQLITE_OK else { return failure }
        // The pager writes whole pages to a database.
        guard count == PageSealer.pageSize, offset % Int64(PageSealer.pageSize) == 0 else {
            return DescriptorFile.writeFailure
        }
        let number = Self.page(at: offset)
        if let known = places[number] {
            if known.batch == current {
                batches[current].replace(known.place, content)
                return SQLITE_OK
            }
            // Without this wait, two threads could write the page in either order.
            settle(known.batch)
        }
        places[number] = (current, batches[current].append(number, content))
        size = max(size, offset + Int64(count))
        if batches[current].isFull { submit() }
        return failure
    }

    private func submit() {
        threads.submit(batches[current])
        current = (current + 1) % batches.count
        settle(current)
    }

    /// Waits until a batch is written.
    private func settle(_ batch: Int) {
        for number in batches[batch].numbers where places[number]?.batch == batch { places[number] = nil }
        threads.settle(batches[batch], with: sealer)
        let result = batches[batch].reset()
        if failure == SQLITE_OK { failure = result }
    }

    /// Writes the remaining pages, and waits until all are written.
    func flush() -> Int32 {
        if !batches[current].isEmpty {
            // This thread waits for the batch at once, so no thread is started for it.
            threads.submit(batches[current], startsThread: false)
            current = (current + 1) % batches.count
        }
        for batch in batches.indices { settle(batch) }
        return failure
    }

    func truncate(to newSize: Int64) -> Int32 {
        let result = flush()
        guard result == SQLITE_OK else { return result }
        size = newSize
        return disk.truncate(to: newSize)
    }

    func sync() -> Int32 {
        let result = flush()
        return result == SQLITE_OK ? disk.sync() : result
    }

    func close() -> Int32 {
        let result = flush()
        threads.end()
        return result
    }

    // MARK: Reading

    /// Reads a page or part of a page.
    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        let inPage = Int(offset % Int64(PageSealer.pageSize))
        guard inPage + count <= PageSealer.pageSize else { return DescriptorFile.readFailure }
        guard offset + Int64(count) <= size else {
            buffer.initializeMemory(as: UInt8.self, repeating: 0, count: count)
            return DescriptorFile.shortRead
        }
        let number = Self.page(at: offset)
        if let known = places[number] {
            if known.batch == current {
                buffer.copyMemory(from: batches[current].page(at: known.place) + inPage, byteCount: count)
                return SQLITE_OK
            }
            settle(known.batch)
        }
        guard failure == SQLITE_OK else { return failure }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2 * PageSealer.pageSize) { memory in
            guard let sealed = memory.baseAddress else { return SQLITE_NOMEM }
            let page = sealed + PageSealer.pageSize
            let result = disk.read(sealed, page: number)
            guard result == SQLITE_OK else { return result }
            guard sealer.open(sealed, number: number, into: page) else { return DescriptorFile.readFailure }
            buffer.copyMemory(from: page + inPage, byteCount: count)
            return SQLITE_OK
        }
    }

    private static func page(at offset: Int64) -> UInt32 { UInt32(offset / Int64(PageSealer.pageSize)) + 1 }
}
