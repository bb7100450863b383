internal import CipherSQLiteFormat

/// Reads payloads with their overflow pages, and accepts only chains that SQLite can have written: nothing else claims
/// their pages, and the last page names no next page.
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
        /// Whether the only fault is that the last page names a next page.
        var isContinued = false
    }

    /// A complete payload.
    struct Payload {
        let bytes: UnsafeRawBufferPointer
        /// The offset in the payload of the last overflow page that contains only zeros, and the number of that page.
        ///
        /// A blob may end in zeros, but text does not.
        let empty: (start: Int, page: UInt32)?
    }

    /// Lends the complete payload of a cell to `body`.
    ///
    /// - Parameters:
    ///   - claims: Whether the cell claims its overflow pages from now on.
    ///   - mayContinue: Whether the last page may name a next page, which SQLite ignores.
    /// - Throws: ``Loss``; any error thrown by the source or by `body`.
    mutating func read<Result>(
        _ cell: TreeCell, claims: Bool = true, mayContinue: Bool = false, _ body: (Payload) throws -> Result
    ) throws -> Result {
        let owners = owners
        var claimed: [UInt32] = []
        defer { if !claims { owners.release(claimed) } }
        return try read(cell, claims, claimed: &claimed, mayContinue: mayContinue, body)
    }

    private mutating func read<Result>(
        _ cell: TreeCell, _ claims: Bool, claimed: inout [UInt32], mayContinue: Bool,
        _ body: (Payload) throws -> Result
    ) throws -> Result {
        chain.removeAll(keepingCapacity: true)
        guard cell.local.count < cell.length else { return try body(Payload(bytes: cell.local, empty: nil)) }
        let pages = source.geometry.overflowPages(for: cell.length - cell.local.count)
        guard pages < Int(source.pageCount) else { throw Loss(page: cell.page) }
        memory.removeAll(keepingCapacity: true)
        memory.append(contentsOf: cell.local)
        var (next, left) = (cell.overflow, cell.length - cell.local.count)
        var empty: (start: Int, page: UInt32)?
        do {
            while left > 0 {
                guard source.geometry.mayHold(next, of: source.pageCount), owners.claim(next, .overflow) else {
                    if claims { owners.contest(next) }
                    throw Loss(page: claimed.last ?? cell.page)
                }
                claimed.append(next)
                guard let page = try HeldPage(next, in: source) else { throw Loss(page: next) }
                if page.isEmpty { empty = (memory.count, next) }
                let count = min(left, source.geometry.usableSize - 4)
                memory.append(contentsOf: page.bytes.part(4, count))
                left -= count
                let following = page.bytes.big32(0)
                guard (following == 0) == (left == 0) || mayContinue && left == 0 else {
                    throw Loss(page: next, isContinued: left == 0)
                }
                next = following
            }
        } catch {
            // Pages that cannot belong to this row may belong to another row.
            owners.release(claimed)
            claimed.removeAll()
            throw error
        }
        chain = claimed
        return try memory.withUnsafeBytes { try body(Payload(bytes: $0, empty: empty)) }
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
