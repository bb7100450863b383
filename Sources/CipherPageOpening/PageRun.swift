internal import CipherSQLiteFormat

/// Pages that follow each other in a file, read and authenticated together.
// Not `Sendable`: one thread's, as the pages are.
final class PageRun {
    private static let capacity = 16

    private let pageSize: Int
    private let memory: UnsafeMutableRawBufferPointer
    private var first: UInt32 = 0
    private var count = 0
    /// Of each page; empty where nothing is known of them.
    var areAuthentic: [Bool] = []

    init(pageSize: Int) {
        self.pageSize = pageSize
        memory = .allocate(byteCount: Self.capacity * pageSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// The page behind them.
    var end: UInt32 { first &+ UInt32(count) }

    var pages: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: memory[..<(count * pageSize)]) }

    func contains(_ page: UInt32) -> Bool { page >= first && page - first < UInt32(count) && !areAuthentic.isEmpty }

    /// A page that it contains, and whether it is authentic.
    subscript(page: UInt32) -> (bytes: UnsafeRawBufferPointer, isAuthentic: Bool) {
        let index = Int(page - first)
        let start = index * pageSize
        return (UnsafeRawBufferPointer(rebasing: memory[start..<start + pageSize]), areAuthentic[index])
    }

    /// Reads as many pages as there are and fit.
    ///
    /// - Throws: What keeps the first from being read; of those behind it is told when they are asked for.
    func fill(from page: UInt32, upTo pageCount: UInt32, _ source: some PageSource) throws {
        (first, count, areAuthentic) = (page, 0, [])
        while count < Self.capacity, page <= pageCount, UInt32(count) <= pageCount - page {
            let place = UnsafeMutableRawBufferPointer(rebasing: memory[(count * pageSize)...].prefix(pageSize))
            let lent: UnsafeRawBufferPointer?
            do {
                lent = try source.lend(page + UInt32(count), place)
            } catch {
                if count == 0 { throw error }
                return
            }
            guard let lent, lent.count >= pageSize else { return }
            if lent.baseAddress != UnsafeRawPointer(place.baseAddress) {
                place.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent[..<pageSize]))
            }
            count += 1
        }
    }
}
