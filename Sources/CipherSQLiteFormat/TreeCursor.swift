/// Walks a b-tree in the order of its keys.
///
/// What it throws is about one page, one cell or one payload, and the next call continues behind it: whoever proves
/// stops at the first damage, and whoever recovers continues. A page is reached once, so the calls have an end whatever
/// the pages say.
package struct TreeCursor<Source: PageSource>: ~Copyable {
    package let source: Source
    package let root: UInt32
    @usableFromInline let claims: any PageClaims
    /// The page that is to be entered next; 0 for none.
    @usableFromInline var pending: UInt32
    /// The interior pages from the root down.
    @usableFromInline var levels: [TreeLevel] = []
    @usableFromInline var leaf: TreePage
    @usableFromInline var nextCell = 0
    @usableFromInline var isTable: Bool?
    @usableFromInline var memory: PageMemory
    /// The cell whose overflow pages are claimed.
    @usableFromInline var claimed: (page: UInt32, index: Int) = (0, 0)

    /// As many levels as SQLite has.
    @usableFromInline static var mostLevels: Int { 20 }

    /// - Parameter claims: Keeps account of the pages; shared, where several trees are walked.
    package init(_ source: Source, root: UInt32, claims: any PageClaims = PageSet()) {
        self.source = source
        self.root = root
        self.claims = claims
        pending = root
        leaf = TreePage(emptyWith: source.geometry)
        memory = PageMemory(source.geometry.pageSize)
        // Page 0 does not exist, which `pending` would take for no page.
        if root == 0 { pending = .max }
    }

    /// Whether the tree is a table's; `nil` before its root was read.
    @inlinable package var isOfTable: Bool? { isTable }

    /// How many interior pages are above the page that was entered last.
    @inlinable package var level: Int { levels.count }

    /// The next cell of a leaf, or, in an index, of any page; `nil` at the end.
    ///
    /// What it lends lasts until the next call.
    ///
    /// - Throws: ``DamagedPage``, and what the source throws.
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

    /// Passes over the cells that are left on the leaf of the last cell.
    package mutating func skipLeaf() { nextCell = leaf.cellCount }

    /// Goes to the next leaf, or to the next cell of an interior page of an index.
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

    /// Reads a page of the tree, and tells whether it is a leaf.
    @inlinable mutating func enter(_ number: UInt32) throws -> Bool {
        // Nothing of the leaf before is left, whatever becomes of this page.
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
        // Only a root is without cells: of an empty tree, or of the schema's, where page 1 has no room for one.
        guard page.cellCount > 0 || levels.isEmpty && (page.kind.isLeaf || number == 1) else {
            throw DamagedPage(number, .cellCount)
        }
        guard page.kind.isLeaf else {
            // The leaf before may have been in the same memory.
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

    /// Goes to the first row whose rowid is above another one; only for a table, before its first cell was asked for.
    ///
    /// - Throws: ``DamagedPage``, and what the source throws.
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

    /// The first cell of a table's page whose rowid is above another one; the number of cells where there is none.
    private static func firstCell(above rowid: Int64, on page: TreePage) throws(DamagedPage) -> Int {
        var (low, high) = (0, page.cellCount)
        while low < high {
            let middle = (low + high) / 2
            if try page.cell(at: middle).rowid > rowid { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Between which rowids those of the current leaf must lie, as the interior pages above it tell.
    ///
    /// - Throws: ``DamagedPage``.
    @inlinable package func leafBounds() throws(DamagedPage) -> RowIDBounds {
        var bounds = RowIDBounds()
        for level in levels.reversed() {
            // The walk is past the child.
            let child = level.step / 2 - 1
            if bounds.upTo == nil, child < level.page.cellCount { bounds.upTo = try level.page.cell(at: child).rowid }
            if bounds.above == nil, child > 0 { bounds.above = try level.page.cell(at: child - 1).rowid }
        }
        return bounds
    }
}

/// An interior page, and where on it the walk is: at a child in even steps, at the cell behind it in odd ones.
package struct TreeLevel {
    @usableFromInline let page: TreePage
    @usableFromInline var step = 0

    @inlinable init(page: TreePage) { self.page = page }
}

/// What a walk has come to.
package enum TreePosition {
    case leaf
    case cell(TreeCell)
    case end
}

/// A range of rowids: those above one and up to another.
package struct RowIDBounds: Equatable, Sendable {
    /// `nil` for no lower bound.
    package var above: Int64?
    /// `nil` for no upper bound.
    package var upTo: Int64?

    package init(above: Int64? = nil, upTo: Int64? = nil) {
        self.above = above
        self.upTo = upTo
    }

    @inlinable package func contains(_ rowid: Int64) -> Bool {
        above.map { rowid > $0 } ?? true && upTo.map { rowid <= $0 } ?? true
    }

    /// What lies within both.
    package func intersection(_ other: RowIDBounds) -> RowIDBounds {
        RowIDBounds(
            above: [above, other.above].compactMap { $0 }.max(), upTo: [upTo, other.upTo].compactMap { $0 }.min())
    }
}
