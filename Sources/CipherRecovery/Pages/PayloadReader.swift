internal import CipherSQLiteFormat

/// Reads payloads with their overflow pages, and accepts only chains whose pages nothing else claims.
///
/// SQLite writes no next page into the last page of a chain, but does not read that number either. Another number
/// there is reported, except for a payload that does not claim its pages, such as a deleted row's: this number shows
/// that its pages belong to another payload now.
///
/// Source: SQLite, "Database File Format", section 1.6.1.
struct PayloadReader<Source: PageSource>: ~Copyable {
    let source: Source
    let owners: PageOwners
    /// The overflow pages of the payload that was read last.
    private(set) var chain: [UInt32] = []
    private var memory: [UInt8] = []

    init(_ source: Source, _ owners: PageOwners) {
        self.source = source
        self.owners = owners
    }

    /// The page that prevents a payload from being read: it is missing, damaged or claimed by something else.
    struct Loss: Error {
        let page: UInt32
    }

    /// A complete payload.
    struct Payload {
        let bytes: UnsafeRawBufferPointer
        /// The offset in the payload of the last overflow page that contains only zeros, and the number of that page.
        ///
        /// A blob may end in zeros, but text does not.
        let empty: (start: Int, page: UInt32)?
        /// The last overflow page, if it names a next page.
        let following: UInt32?
    }

    /// Lends the complete payload of a cell to `body`.
    ///
    /// - Parameter claims: Whether the cell claims its overflow pages from now on.
    /// - Throws: ``Loss``; any error thrown by the source or by `body`.
    mutating func read<Result>(
        _ cell: TreeCell, claims: Bool = true, _ body: (Payload) throws -> Result
    ) throws -> Result {
        let owners = owners
        var claimed: [UInt32] = []
        defer { if !claims { owners.release(claimed) } }
        return try read(cell, claims: claims, claimed: &claimed, body)
    }

    private mutating func read<Result>(
        _ cell: TreeCell, claims: Bool, claimed: inout [UInt32], _ body: (Payload) throws -> Result
    ) throws -> Result {
        chain.removeAll(keepingCapacity: true)
        guard cell.local.count < cell.length else {
            return try body(Payload(bytes: cell.local, empty: nil, following: nil))
        }
        let pages = source.geometry.overflowPages(for: cell.length - cell.local.count)
        guard pages < Int(source.pageCount) else { throw Loss(page: cell.page) }
        memory.removeAll(keepingCapacity: true)
        memory.append(contentsOf: cell.local)
        var (next, left) = (cell.overflow, cell.length - cell.local.count)
        var last: UInt32 = 0
        var empty: (start: Int, page: UInt32)?
        do {
            while left > 0 {
                guard source.geometry.mayHold(next, of: source.pageCount), owners.claim(next, .overflow) else {
                    throw Loss(page: claimed.last ?? cell.page)
                }
                claimed.append(next)
                guard let page = try HeldPage(next, in: source) else { throw Loss(page: next) }
                if page.isEmpty { empty = (memory.count, next) }
                let count = min(left, source.geometry.usableSize - 4)
                memory.append(contentsOf: page.bytes.part(4, count))
                left -= count
                last = next
                next = page.bytes.big32(0)
                guard next == 0 || left > 0 || claims else { throw Loss(page: last) }
            }
        } catch {
            // Pages that cannot belong to this row may belong to another row.
            owners.release(claimed)
            claimed.removeAll()
            throw error
        }
        chain = claimed
        let following = next == 0 ? nil : last
        return try memory.withUnsafeBytes { try body(Payload(bytes: $0, empty: empty, following: following)) }
    }

    /// Lends the complete payload of a cell to `body`, without claiming its overflow pages.
    ///
    /// - Throws: ``Loss``; any error thrown by the source or by `body`.
    mutating func peek<Result>(
        _ cell: TreeCell, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try read(cell, claims: false) { try body($0.bytes) }
    }
}
