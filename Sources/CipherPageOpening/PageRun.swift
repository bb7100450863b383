internal import CipherSQLiteFormat

/// Consecutive pages of a file, which are read and authenticated together.
// Not `Sendable`: the object belongs to one thread, as the pages do.
final class PageRun {
    private static let capacity = 16

    private let pageSize: Int
    private let memory: UnsafeMutableRawBufferPointer
    private var first: UInt32 = 0
    private var count = 0
    /// Whether each page is authentic; empty if this is not known.
    var areAuthentic: [Bool] = []

    init(pageSize: Int) {
        self.pageSize = pageSize
        memory = .allocate(byteCount: Self.capacity * pageSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// The number of the page after the run.
    var end: UInt32 { first &+ UInt32(count) }

    var pages: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: memory[..<(count * pageSize)]) }

    func contains(_ page: UInt32) -> Bool { page >= first && page - first < UInt32(count) && !areAuthentic.isEmpty }

    /// Returns a page that the run contains, and whether it is authentic.
    subscript(page: UInt32) -> (bytes: UnsafeRawBufferPointer, isAuthentic: Bool) {
        let index = Int(page - first)
        let start = index * pageSize
        return (UnsafeRawBufferPointer(rebasing: memory[start..<start + pageSize]), areAuthentic[index])
    }

    /// Reads as many pages as exist and fit.
    ///
    /// - Throws: The error that prevents the first page from being read. Errors on later pages are reported when those
    ///   pages are requested.
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
