/// The use of every page of a database, found by walking the whole database.
///
/// It takes eight bytes of memory for each page of the database.
package final class PageUsage: PageClaims {
    /// The rows of the schema table.
    package private(set) var schema: [SchemaEntry] = []
    package private(set) var freeList: FreeList?
    /// The damage that was found during the walk, up to ``mostDamage`` pages.
    package private(set) var damage: [DamagedPage] = []
    package static let mostDamage = 10_000
    /// Uses of pages that already had another use, up to ``mostDamage`` of them.
    package private(set) var repeatedUses: [(page: UInt32, use: PageUse)] = []
    /// The b-tree pages that do not fill their cell content areas.
    package private(set) var unfilledPages: [UInt32] = []
    /// The leaves with rowids outside of the bounds that the pages above specify.
    package private(set) var misplacedLeaves: [UInt32] = []

    /// The use and the root of each page, from page 1; 0 if nothing leads to the page.
    private var uses: [UInt64]

    /// Walks a database.
    ///
    /// - Parameter header: The header of the file, or the part of it that is known.
    /// - Throws: Any error thrown by the source; damage is recorded.
    package init(of source: some PageSource, header: FileHeader) throws {
        uses = [UInt64](repeating: 0, count: Int(source.pageCount))
        _ = claim(PageGeometry.lockPage(source.geometry.pageSize), for: .locks)
        if header.hasPointerMap { PointerMap(source.geometry).claimPages(of: source.pageCount, self) }
        schema = try SchemaEntry.all(in: source, claims: self) { note($0) }
        // A damaged index may lead to pages of a table.
        let tables = Set(schema.filter(\.isTable).map(\.rootPage)).subtracting([0])
        for root in tables.sorted() { try walk(root, source) }
        for root in Set(schema.map(\.rootPage)).subtracting(tables).subtracting([0]).sorted() {
            try walk(root, source)
        }
        freeList = try FreeList(in: source, first: header.firstFreePage, claims: self) { note($0) }
    }

    private func walk(_ root: UInt32, _ source: some PageSource) throws {
        var cursor = TreeCursor(source, root: root, claims: self)
        var leaf: (page: UInt32, bounds: RowIDBounds)?
        while true {
            do {
                guard let cell = try cursor.next() else { return }
                if cursor.isOfTable == true {
                    if leaf?.page != cell.page { leaf = (cell.page, try cursor.leafBounds()) }
                    if leaf?.bounds.contains(cell.rowid) == false, misplacedLeaves.last != cell.page {
                        misplacedLeaves.append(cell.page)
                    }
                }
                try cursor.forEachPiece(of: cell) { _ in }
            } catch let error as DamagedPage {
                note(error)
            }
        }
    }

    private func note(_ error: DamagedPage) {
        if damage.count < Self.mostDamage { damage.append(error) }
    }

    /// The use of a page; `nil` if nothing leads to it.
    package subscript(page: UInt32) -> PageUse? {
        guard page >= 1, page <= uses.count else { return nil }
        return Self.use(uses[Int(page) - 1])
    }

    /// The pages that nothing leads to.
    package var lostPages: some Collection<UInt32> {
        uses.indices.lazy.filter { [uses] in uses[$0] == 0 }.map { UInt32($0 + 1) }
    }

    package func claim(_ page: UInt32, for use: PageUse) -> Bool {
        guard page >= 1, page <= uses.count else { return false }
        guard uses[Int(page) - 1] == 0 else {
            if repeatedUses.count < Self.mostDamage { repeatedUses.append((page, use)) }
            return false
        }
        uses[Int(page) - 1] = Self.code(use)
        return true
    }

    package func noteUnfilled(_ page: UInt32) { unfilledPages.append(page) }

    private static func code(_ use: PageUse) -> UInt64 {
        switch use {
        case .tree(let root): return 1 << 32 | UInt64(root)
        case .overflow(let root): return 2 << 32 | UInt64(root)
        case .freeTrunk: return 3 << 32
        case .freeLeaf: return 4 << 32
        case .pointerMap: return 5 << 32
        case .locks: return 6 << 32
        }
    }

    private static func use(_ code: UInt64) -> PageUse? {
        let root = UInt32(truncatingIfNeeded: code)
        switch code >> 32 {
        case 1: return .tree(root: root)
        case 2: return .overflow(root: root)
        case 3: return .freeTrunk
        case 4: return .freeLeaf
        case 5: return .pointerMap
        case 6: return .locks
        default: return nil
        }
    }
}
