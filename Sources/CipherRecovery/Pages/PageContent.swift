internal import CipherSQLiteFormat

/// The cells of a b-tree page: those that are consistent, and those that contradict the rest of the page.
///
/// SQLite maintains three invariants on every page, and a damaged page violates them: no two cells overlap, the rowids
/// on a table page increase, and cells, free blocks and fragments fill the content area exactly.
/// Source: SQLite, "Database File Format", section 1.6, and `sqlite3BtreeIntegrityCheck` in its `btree.c`.
struct PageContent {
    let page: HeldPage
    let tree: TreePage
    /// The cells, in order.
    private(set) var cells: [TreeCell] = []
    /// The cells that can be read but contradict other cells.
    private(set) var doubtful: [TreeCell] = []
    /// Whether the page is consistent, without any contradiction.
    private(set) var isWhole = true

    var number: UInt32 { page.number }

    /// Keeps the page's memory alive until this call, because the cells only point into it.
    func keep() { withExtendedLifetime(page) {} }

    /// Reads the cells of a page; returns `nil` if it is not a b-tree page.
    init?(_ page: HeldPage, _ geometry: PageGeometry) {
        guard let tree = try? TreePage(page.bytes, number: page.number, geometry) else { return nil }
        self.init(page, tree)
        // The header counts too few cells, but all cells are intact.
        guard let filled = tree.filled, case let content = PageContent(page, filled), content.isWhole else { return }
        self = content
        isWhole = false
    }

    private init(_ page: HeldPage, _ tree: TreePage) {
        self.page = page
        self.tree = tree
        var read: [(cell: TreeCell, extent: Range<Int>)] = []
        read.reserveCapacity(tree.cellCount)
        for index in 0..<tree.cellCount {
            guard let cell = try? tree.cell(at: index) else {
                isWhole = false
                continue
            }
            read.append((cell, tree.extent(of: cell)))
        }
        let overlapping = Self.overlapping(read.map(\.extent))
        let misplaced = tree.kind.isTable ? Self.misplaced(read.map(\.cell.rowid)) : []
        for (position, entry) in read.enumerated() {
            if overlapping.contains(position) || misplaced.contains(position) {
                doubtful.append(entry.cell)
            } else {
                cells.append(entry.cell)
            }
        }
        isWhole = isWhole && doubtful.isEmpty && tree.fillsContentArea
    }

    /// Returns whether a page other than page 1 is a b-tree page without contradictions.
    static func isWhole(_ page: UnsafeRawBufferPointer, _ geometry: PageGeometry) -> Bool {
        let bytes = MemoryBytes(page)
        // The page is treated as page 2 of two; page 1 is never read.
        let pages = FilePages(RepeatedPage(bytes: bytes), geometry, pageCount: 2)
        guard let held = try? HeldPage(2, in: pages), let content = PageContent(held, geometry) else { return false }
        return content.isWhole
    }

    private static func overlapping(_ extents: [Range<Int>]) -> Set<Int> {
        var found: Set<Int> = []
        let order = extents.indices.sorted { extents[$0].lowerBound < extents[$1].lowerBound }
        var reach: (position: Int, end: Int)?
        for position in order {
            if let reach, extents[position].lowerBound < reach.end { found.formUnion([position, reach.position]) }
            if extents[position].upperBound > reach?.end ?? 0 { reach = (position, extents[position].upperBound) }
        }
        return found
    }

    /// Returns the positions of the numbers outside a longest increasing subsequence.
    private static func misplaced(_ rowids: [Int64]) -> Set<Int> {
        guard zip(rowids, rowids.dropFirst()).contains(where: { $0 >= $1 }) else { return [] }
        // For each length, the position of the smallest last number; for each position, its predecessor.
        var tails: [Int] = []
        var previous = [Int?](repeating: nil, count: rowids.count)
        for position in rowids.indices {
            var (low, high) = (0, tails.count)
            while low < high {
                let middle = (low + high) / 2
                if rowids[tails[middle]] < rowids[position] { low = middle + 1 } else { high = middle }
            }
            previous[position] = low > 0 ? tails[low - 1] : nil
            if low < tails.count { tails[low] = position } else { tails.append(position) }
        }
        var others = Set(rowids.indices)
        var next = tails.last
        while let position = next {
            others.remove(position)
            next = previous[position]
        }
        return others
    }
}

/// A source that returns one page at every offset.
private struct RepeatedPage: ByteSource {
    let bytes: MemoryBytes
    var size: Int64 { 2 * bytes.size }

    func lend(at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer? {
        bytes.lend(at: 0, count: count, scratch)
    }
}
