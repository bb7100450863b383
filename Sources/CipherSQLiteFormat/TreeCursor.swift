/// Walks a b-tree in the order of its keys.
///
/// What it throws is about one page, one cell or one payload, and the next call goes on behind it: whoever proves stops at
/// the first damage, and whoever recovers goes on. A page is reached once, so the calls have an end whatever the pages say.
package struct TreeCursor<Source: PageSource>: ~Copyable {
    package let source: Source
    package let root: UInt32
    @usableFromInline let claims: any PageClaims
    /// The page that is to be entered next; 0 for none.
    @usableFromInline var pending: UInt32
    /// The interior pages from the root down.
    @usableFromInline var levels: [Level] = []
    @usableFromInline var leaf: TreePage
    @usableFromInline var nextCell = 0
    @usableFromInline var isTable: Bool?
    @usableFromInline var memory: PageMemory
    /// The cell whose overflow pages are claimed.
    @usableFromInline var claimed: (page: UInt32, index: Int) = (0, 0)

    /// As many levels as SQLite has.
    @usableFromInline static var mostLevels: Int { 20 }

    /// An interior page, and where on it the walk is: at a child in even steps, at the cell behind it in odd ones.
    @usableFromInline struct Level {
        @usableFromInline let page: TreePage
        @usableFromInline var step = 0

        @usableFromInline init(page: TreePage) { self.page = page }
    }

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
    package var isOfTable: Bool? { isTable }

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

    @usableFromInline enum Position {
        case leaf
        case cell(TreeCell)
        case end
    }

    /// Goes to the next leaf, or to the next cell of an interior page of an index.
    @inlinable mutating func advance() throws -> Position {
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
        guard page.kind.isLeaf else {
            // The leaf before may have been in the same memory.
            leaf = TreePage(emptyWith: source.geometry)
            nextCell = 0
            levels.append(Level(page: page))
            return false
        }
        leaf = page
        nextCell = 0
        return true
    }

    // MARK: Payloads

    /// The payload of a cell, as one piece.
    ///
    /// It lasts until the next call, and takes memory only where it is on several pages.
    ///
    /// - Throws: ``DamagedPage``, and what the source throws.
    @inlinable package mutating func payload(of cell: TreeCell) throws -> UnsafeRawBufferPointer {
        guard cell.local.count < cell.length else { return cell.local }
        return try assembled(cell)
    }

    @usableFromInline mutating func assembled(_ cell: TreeCell) throws -> UnsafeRawBufferPointer {
        try checkLength(of: cell)
        let whole = memory.payload(cell.length)
        var length = 0
        try forEachPiece(of: cell) { piece in
            UnsafeMutableRawBufferPointer(rebasing: whole[length...]).copyMemory(from: piece)
            length += piece.count
        }
        return UnsafeRawBufferPointer(whole)
    }

    /// Lends the payload of a cell piece by piece: what is on the cell's page, then that of each overflow page.
    ///
    /// - Throws: ``DamagedPage``, and what the source and `body` throw.
    @inlinable package mutating func forEachPiece(
        of cell: TreeCell, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try body(cell.local)
        guard cell.local.count < cell.length else { return }
        try checkLength(of: cell)
        let isNew = claimed != (cell.page, cell.index)
        claimed = (cell.page, cell.index)
        var (page, left) = (cell.overflow, cell.length - cell.local.count)
        while left > 0 {
            guard page > 1, source.geometry.mayHold(page, of: source.pageCount) else {
                throw DamagedPage(page, .missing)
            }
            guard !isNew || claims.claim(page, for: .overflow(root: root)) else {
                throw DamagedPage(page, .claimedTwice)
            }
            guard let bytes = try source.lend(page, memory.overflow()), bytes.count >= source.geometry.usableSize else {
                throw DamagedPage(page, .missing)
            }
            let piece = bytes.part(4, min(left, source.geometry.usableSize - 4))
            page = bytes.big32(0)
            left -= piece.count
            try body(piece)
        }
    }

    /// No payload has more overflow pages than the database has pages.
    @usableFromInline func checkLength(of cell: TreeCell) throws(DamagedPage) {
        guard source.geometry.overflowPages(for: cell.length - cell.local.count) < Int(source.pageCount) else {
            throw DamagedPage(cell.page, .payloadLength)
        }
    }
}

/// The memory of a cursor, which takes what it needs and keeps it.
@usableFromInline struct PageMemory: ~Copyable {
    private let pageSize: Int
    private var pages: [UnsafeMutableRawBufferPointer] = []
    private var chain: UnsafeMutableRawBufferPointer?
    private var whole = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    init(_ pageSize: Int) { self.pageSize = pageSize }

    deinit {
        for page in pages { page.deallocate() }
        chain?.deallocate()
        whole.deallocate()
    }

    /// For one page of a level of the tree.
    @usableFromInline mutating func page(_ level: Int) -> UnsafeMutableRawBufferPointer {
        while pages.count <= level { pages.append(.allocate(byteCount: pageSize, alignment: 16)) }
        return pages[level]
    }

    /// For one overflow page.
    @usableFromInline mutating func overflow() -> UnsafeMutableRawBufferPointer {
        if let chain { return chain }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pageSize, alignment: 16)
        chain = memory
        return memory
    }

    /// For a payload.
    mutating func payload(_ length: Int) -> UnsafeMutableRawBufferPointer {
        if whole.count < length {
            whole.deallocate()
            whole = .allocate(byteCount: max(length, 2 * whole.count), alignment: 16)
        }
        return UnsafeMutableRawBufferPointer(rebasing: whole[..<length])
    }
}
