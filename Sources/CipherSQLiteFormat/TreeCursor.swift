/// Walks a b-tree in key order.
///
/// Each error concerns one page, one cell or one payload, and the next call continues after it: a verification stops at
/// the first damage, and a recovery continues. Each page is visited at most once, so the walk ends whatever the pages
/// contain.
package struct TreeCursor<Source: PageSource>: ~Copyable {
    package let source: Source
    package let root: UInt32
    @usableFromInline let claims: any PageClaims
    /// The page to enter next; 0 if there is no such page.
    @usableFromInline var pending: UInt32
    /// The interior pages from the root down.
    @usableFromInline var levels: [TreeLevel] = []
    @usableFromInline var leaf: TreePage
    @usableFromInline var nextCell = 0
    @usableFromInline var isTable: Bool?
    @usableFromInline var memory: PageMemory
    /// The cell whose overflow pages are claimed.
    @usableFromInline var claimed: (page: UInt32, index: Int) = (0, 0)

    /// SQLite's limit on the depth of a b-tree.
    @usableFromInline static var mostLevels: Int { 20 }

    /// Creates a cursor before the first cell.
    ///
    /// - Parameter claims: Records the pages that are reached; shared if several b-trees are walked.
    package init(_ source: Source, root: UInt32, claims: any PageClaims = PageSet()) {
        self.source = source
        self.root = root
        self.claims = claims
        pending = root
        leaf = TreePage(emptyWith: source.geometry)
        memory = PageMemory(source.geometry.pageSize)
        // Page 0 does not exist, and in `pending`, 0 means no page.
        if root == 0 { pending = .max }
    }

    /// Whether the b-tree belongs to a table; `nil` before its root was read.
    @inlinable package var isOfTable: Bool? { isTable }

    /// The number of interior pages above the page that was entered last.
    @inlinable package var level: Int { levels.count }

    /// Returns the next cell of a leaf or, in an index, of any page; `nil` at the end.
    ///
    /// The cell is valid until the next call.
    ///
    /// - Throws: ``DamagedPage``, and any error thrown by the source.
    @inlinable package mutating func next() throws -> TreeCell? {
        while true {
            if nextCell < leaf.cellCount {
                nextCell += 1
                return try leaf.cell(at: nextCell - 1)
            }
            switch try advance() {
            case .leaf: continue
            case .cell(let cell): return cell
            case .end: return nil
            }
        }
    }

    /// Skips the remaining cells on the leaf of the cell that was returned last.
    package mutating func skipLeaf() { nextCell = leaf.cellCount }

    /// Moves to the next leaf, or to the next cell of an interior page of an index.
    @inlinable mutating func advance() throws -> TreePosition {
        while true {
            if pending != 0 {
                let page = pending
                pending = 0
                if try enter(page) { return .leaf }
            }
            guard !levels.isEmpty else { return .end }
            let top = levels.count - 1
            let (page, step) = (levels[top].page, levels[top].step)
            guard step <= 2 * page.cellCount else {
                levels.removeLast()
                continue
            }
            levels[top].step += page.kind.isTable ? 2 : 1
            if step & 1 == 1 { return .cell(try page.cell(at: step / 2)) }
            pending = step == 2 * page.cellCount ? page.rightChild : try page.child(at: step / 2)
            if pending == 0 { throw DamagedPage(page.number, .missing) }
        }
    }

    /// Reads a page of the b-tree, and returns whether it is a leaf.
    @inlinable mutating func enter(_ number: UInt32) throws -> Bool {
        // The previous leaf is finished, whatever happens to this page.
        nextCell = leaf.cellCount
        guard source.geometry.mayHold(number, of: source.pageCount) else { throw DamagedPage(number, .missing) }
        guard claims.claim(number, for: .tree(root: root)) else { throw DamagedPage(number, .claimedTwice) }
        guard levels.count < Self.mostLevels else { throw DamagedPage(number, .depth) }
        guard let bytes = try source.lend(number, memory.page(levels.count)) else {
            throw DamagedPage(number, .missing)
        }
        let page = try TreePage(bytes, number: number, source.geometry)
        guard page.kind.isTable == isTable ?? page.kind.isTable else { throw DamagedPage(number, .noTreePage) }
        isTable = page.kind.isTable
        // Only a root may have no cells: that of an empty b-tree, or that of the schema if page 1 has no room for a
        // cell.
        guard page.cellCount > 0 || levels.isEmpty && (page.kind.isLeaf || number == 1) else {
            throw DamagedPage(number, .cellCount)
        }
        if !page.fillsContentArea { claims.noteUnfilled(number) }
        guard page.kind.isLeaf else {
            // The previous leaf may have been in the same memory.
            leaf = TreePage(emptyWith: source.geometry)
            nextCell = 0
            levels.append(TreeLevel(page: page))
            return false
        }
        leaf = page
        nextCell = 0
        return true
    }

    // MARK: Rowids

    /// Moves to the first row whose rowid is greater than the given rowid; only for a table, before the first call to
    /// ``next()``.
    ///
    /// - Throws: ``DamagedPage``, and any error thrown by the source.
    package mutating func seek(after rowid: Int64) throws {
        while pending != 0 {
            let number = pending
            pending = 0
            if try enter(number) {
                nextCell = try Self.firstCell(above: rowid, on: leaf)
                return
            }
            let top = levels.count - 1
            let page = levels[top].page
            guard page.kind.isTable else { throw DamagedPage(number, .noTreePage) }
            let child = try Self.firstCell(above: rowid, on: page)
            levels[top].step = 2 * child + 2
            pending = child == page.cellCount ? page.rightChild : try page.child(at: child)
            if pending == 0 { throw DamagedPage(number, .missing) }
        }
    }

    /// Returns the first cell on a table page whose rowid is greater than the given rowid; the number of cells if there
    /// is no such cell.
    private static func firstCell(above rowid: Int64, on page: TreePage) throws(DamagedPage) -> Int {
        var (low, high) = (0, page.cellCount)
        while low < high {
            let middle = (low + high) / 2
            if try page.cell(at: middle).rowid > rowid { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Returns the bounds that the interior pages specify for the rowids on the current leaf.
    ///
    /// - Throws: ``DamagedPage``.
    @inlinable package func leafBounds() throws(DamagedPage) -> RowIDBounds {
        var bounds = RowIDBounds()
        for level in levels.reversed() {
            // The walk is already past the child.
            let child = level.step / 2 - 1
            if bounds.upTo == nil, child < level.page.cellCount { bounds.upTo = try level.page.cell(at: child).rowid }
            if bounds.above == nil, child > 0 { bounds.above = try level.page.cell(at: child - 1).rowid }
        }
        return bounds
    }
}

/// An interior page, and the position of the walk on it: at a child in even steps, at the cell after that child in odd
/// steps.
package struct TreeLevel {
    @usableFromInline let page: TreePage
    @usableFromInline var step = 0

    @inlinable init(page: TreePage) { self.page = page }
}

/// The position that a walk has reached.
package enum TreePosition {
    case leaf
    case cell(TreeCell)
    case end
}

/// A range of rowids, without its lower bound and with its upper bound.
package struct RowIDBounds: Equatable, Sendable {
    /// The exclusive lower bound; `nil` if there is no bound.
    package var above: Int64?
    /// The inclusive upper bound; `nil` if there is no bound.
    package var upTo: Int64?

    package init(above: Int64? = nil, upTo: Int64? = nil) {
        self.above = above
        self.upTo = upTo
    }

    @inlinable package func contains(_ rowid: Int64) -> Bool {
        above.map { rowid > $0 } ?? true && upTo.map { rowid <= $0 } ?? true
    }

    /// Returns the range that is within both ranges.
    package func intersection(_ other: RowIDBounds) -> RowIDBounds {
        RowIDBounds(
            above: [above, other.above].compactMap { $0 }.max(), upTo: [upTo, other.upTo].compactMap { $0 }.min())
    }
}
