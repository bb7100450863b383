internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// A map of a database that other connections write to: the table of each page, and the order of each table's leaves.
///
/// If neither a leaf nor any overflow page of its rows has been written, the leaf has the same rows as before. The rows
/// that may have changed are therefore those between two such leaves that have other leaves between them, or that were
/// not neighbours before. This relies only on the pages listed in the log and on the current b-trees, not on how SQLite
/// changes the b-trees.
struct TreeMap {
    /// A table, identified by its tree.
    struct Table: Equatable {
        let name: SchemaName
        let root: UInt32
        /// Whether the table is WITHOUT ROWID.
        let isKeyed: Bool
    }

    /// A range of rowids between two exclusive bounds; `nil` for no bound.
    struct RowIDs: Equatable {
        var above: Int64?
        var below: Int64?
    }

    /// The rows of a table that may have changed.
    struct Change: Equatable {
        let table: Table
        /// The ranges; `nil` for all rows, for a table WITHOUT ROWID.
        let ranges: [RowIDs]?
    }

    /// All tables except the schema table.
    let tables: [Table]
    /// The tree of each page: 1 for the schema, 2 for the first table and so on; 0 for any other page.
    private var trees: [Int32] = []
    /// For each overflow page, the leaf whose row continues on it; 0 for any other page.
    private var owners: [UInt32] = []
    /// For each leaf, the leaf before it in its table; 0 for the first, ``unknown`` if that is not known.
    private var before: [UInt32] = []
    /// For each tree, its last leaf, or ``unknown``.
    private var last: [UInt32]

    private static let unknown = UInt32.max
    private static let schema = Table(name: "sqlite_master", root: 1, isKeyed: false)

    /// Reads all pages of all tables.
    ///
    /// - Parameters:
    ///   - written: The pages that may have been different at an earlier commit, for which the map must also be valid.
    ///     For leaves below such a page, it is unknown whether they were neighbours then.
    ///   - checkCancellation: Throws to stop the work.
    /// - Throws: ``DamagedPage``; any error from reading the pages.
    init(
        _ snapshot: LiveSnapshot, _ tables: [Table], writtenSince written: Set<UInt32> = [],
        checkCancellation: () throws -> Void
    ) throws {
        self.tables = tables
        last = Array(repeating: 0, count: tables.count + 1)
        grow(snapshot.pages.pageCount)
        try walk(0, root: 1, isKeyed: false, snapshot.pages, written, checkCancellation)
        for (number, table) in tables.enumerated() {
            try walk(number + 1, root: table.root, isKeyed: table.isKeyed, snapshot.pages, written, checkCancellation)
        }
    }

    private mutating func grow(_ pageCount: UInt32) {
        let missing = Int(pageCount) + 1 - trees.count
        guard missing > 0 else { return }
        trees += Array(repeating: 0, count: missing)
        owners += Array(repeating: 0, count: missing)
        before += Array(repeating: 0, count: missing)
    }

    private mutating func walk(
        _ number: Int, root: UInt32, isKeyed: Bool, _ pages: SnapshotPages, _ written: Set<UInt32>,
        _ checkCancellation: () throws -> Void
    ) throws {
        try checkCancellation()
        let leaves = try takeLeaves(number, root: root, isKeyed: isKeyed, pages, written)
        let memory = Memory(pages.geometry)
        for (index, leaf) in leaves.enumerated() {
            if index % 4_096 == 4_095 { try checkCancellation() }
            try takeOverflow(of: leaf, number, pages, memory)
        }
    }

    /// Returns whether one of these pages belongs to the schema table.
    ///
    /// The first page does. SQL that changes the schema table itself (`writable_schema`) may leave that page unchanged.
    func holdsSchema(_ pages: Set<UInt32>) -> Bool {
        pages.contains { Int($0) < trees.count && trees[Int($0)] == 1 }
    }

    /// Returns what has changed since the previous snapshot, apart from the schema, and updates the map.
    ///
    /// - Parameter written: The pages that were written since the previous snapshot.
    /// - Throws: ``DamagedPage``; any error from reading the pages.
    mutating func follow(_ snapshot: LiveSnapshot, _ written: Set<UInt32>) throws -> [Change] {
        grow(snapshot.pages.pageCount)
        var (touched, changed): (Set<Int>, Set<UInt32>) = ([], written)
        for page in written where Int(page) < trees.count && trees[Int(page)] != 0 {
            touched.insert(Int(trees[Int(page)]) - 1)
            if owners[Int(page)] != 0 { changed.insert(owners[Int(page)]) }
        }
        var changes: [Change] = []
        for number in touched.sorted() {
            let table = number == 0 ? Self.schema : tables[number - 1]
            let ranges = try ranges(number, table, changed, snapshot.pages)
            guard number > 0 else { continue }
            changes.append(Change(table: table, ranges: table.isKeyed ? nil : ranges))
        }
        return changes
    }

    private mutating func ranges(
        _ number: Int, _ table: Table, _ changed: Set<UInt32>, _ pages: SnapshotPages
    ) throws -> [RowIDs] {
        let (formerBefore, formerLast) = (before, last[number])
        let leaves = try takeLeaves(number, root: table.root, isKeyed: table.isKeyed, pages, [])
        let memory = Memory(pages.geometry)
        var ranges: [RowIDs] = []
        // The last unchanged leaf, and whether rows after it may have changed.
        var (lower, isOpen): (UInt32?, Bool) = (nil, false)
        var previous: UInt32 = 0
        for leaf in leaves {
            defer { previous = leaf }
            if changed.contains(leaf) {
                try takeOverflow(of: leaf, number, pages, memory)
                isOpen = true
                continue
            }
            if isOpen || formerBefore[Int(leaf)] != previous, !table.isKeyed {
                ranges.append(
                    RowIDs(
                        above: try lower.map { try Self.rowids(of: $0, pages, memory).last },
                        below: try Self.rowids(of: leaf, pages, memory).first))
            }
            (lower, isOpen) = (leaf, false)
        }
        if isOpen || previous != formerLast, !table.isKeyed {
            ranges.append(RowIDs(above: try lower.map { try Self.rowids(of: $0, pages, memory).last }, below: nil))
        }
        return ranges
    }

    // MARK: Pages

    private struct Memory: ~Copyable {
        let page: UnsafeMutableRawBufferPointer
        let overflow: UnsafeMutableRawBufferPointer

        init(_ geometry: PageGeometry) {
            page = .allocate(byteCount: geometry.pageSize, alignment: 16)
            overflow = .allocate(byteCount: geometry.pageSize, alignment: 16)
        }

        deinit {
            page.deallocate()
            overflow.deallocate()
        }
    }

    private static func page(
        _ number: UInt32, _ pages: SnapshotPages, _ memory: UnsafeMutableRawBufferPointer
    ) throws -> TreePage {
        guard pages.geometry.mayHold(number, of: pages.pageCount), let bytes = try pages.lend(number, memory) else {
            throw DamagedPage(number, .missing)
        }
        return try TreePage(bytes, number: number, pages.geometry)
    }

    /// Returns the leaves of a tree in order, found from interior pages alone; for a WITHOUT ROWID table, also the
    /// interior pages.
    ///
    /// All leaves of a tree have the same depth.
    ///
    /// - Parameter written: The interior pages that do not show which leaves were neighbours.
    private mutating func takeLeaves(
        _ number: Int, root: UInt32, isKeyed: Bool, _ pages: SnapshotPages, _ written: Set<UInt32>
    ) throws -> [UInt32] {
        let memory = Memory(pages.geometry)
        var level = [root]
        var above: [UInt32] = []
        var edges = Edges(root: root, written)
        // The maximum number of levels in SQLite.
        for _ in 0..<20 {
            let first = try Self.page(level[0], pages, memory.page)
            guard first.kind.isTable != isKeyed else { throw DamagedPage(level[0], .noTreePage) }
            guard !first.kind.isLeaf else {
                take(level, number, edges)
                return isKeyed ? above + level : level
            }
            var children: [UInt32] = []
            var below = Edges()
            for (index, number) in level.enumerated() {
                let page = try Self.page(number, pages, memory.page)
                guard !page.kind.isLeaf, page.kind.isTable != isKeyed else { throw DamagedPage(number, .noTreePage) }
                for index in 0..<page.cellCount { children.append(try page.child(at: index)) }
                children.append(page.rightChild)
                below.add(below: index, of: level, edges, written, count: children.count)
                guard children.count <= Int(pages.pageCount) else { throw DamagedPage(number, .claimedTwice) }
            }
            for page in level { assign(page, number) }
            below.close(level, edges, written)
            above += level
            (level, edges) = (children, below)
        }
        throw DamagedPage(root, .depth)
    }

    /// The gaps between the pages of one level of a tree in which other pages may have been, as far as the pages above
    /// show.
    private struct Edges {
        /// Whether there may have been other pages before each page.
        private(set) var mayHaveOthersBefore: [Bool] = []
        /// Whether there may have been other pages after the last page.
        private(set) var mayHaveOthersAtEnd = false

        init() {}

        init(root: UInt32, _ written: Set<UInt32>) {
            mayHaveOthersAtEnd = written.contains(root)
            mayHaveOthersBefore = [mayHaveOthersAtEnd]
        }

        /// Adds the children of one page of the level above, until there are `count` pages.
        mutating func add(
            below index: Int, of level: [UInt32], _ above: Edges, _ written: Set<UInt32>, count: Int
        ) {
            let isWritten = written.contains(level[index])
            let isFormerWritten = index > 0 && written.contains(level[index - 1])
            mayHaveOthersBefore.append(above.mayHaveOthersBefore[index] || isWritten || isFormerWritten)
            while mayHaveOthersBefore.count < count { mayHaveOthersBefore.append(isWritten) }
        }

        mutating func close(_ level: [UInt32], _ above: Edges, _ written: Set<UInt32>) {
            mayHaveOthersAtEnd = above.mayHaveOthersAtEnd || level.last.map(written.contains) ?? false
        }
    }

    private mutating func take(_ leaves: [UInt32], _ number: Int, _ edges: Edges) {
        var previous: UInt32 = 0
        for (leaf, mayHaveOthersBefore) in zip(leaves, edges.mayHaveOthersBefore) {
            assign(leaf, number)
            if Int(leaf) < before.count { before[Int(leaf)] = mayHaveOthersBefore ? Self.unknown : previous }
            previous = leaf
        }
        last[number] = edges.mayHaveOthersAtEnd ? Self.unknown : previous
    }

    private mutating func assign(_ page: UInt32, _ number: Int, owner: UInt32 = 0) {
        guard Int(page) < trees.count else { return }
        trees[Int(page)] = Int32(number + 1)
        owners[Int(page)] = owner
    }

    /// Follows the overflow pages of a page's rows.
    private mutating func takeOverflow(
        of leaf: UInt32, _ number: Int, _ pages: SnapshotPages, _ memory: borrowing Memory
    ) throws {
        let page = try Self.page(leaf, pages, memory.page)
        guard page.kind != .tableInterior else { throw DamagedPage(leaf, .noTreePage) }
        for index in 0..<page.cellCount {
            let cell = try page.cell(at: index)
            var (next, left) = (cell.overflow, pages.geometry.overflowPages(for: cell.length - cell.local.count))
            guard left < Int(pages.pageCount) else { throw DamagedPage(leaf, .payloadLength) }
            while left > 0 {
                guard pages.geometry.mayHold(next, of: pages.pageCount) else { throw DamagedPage(next, .missing) }
                assign(next, number, owner: leaf)
                left -= 1
                guard left > 0 else { break }
                guard let bytes = try pages.lend(next, memory.overflow) else { throw DamagedPage(next, .missing) }
                next = bytes.big32(0)
            }
        }
    }

    private static func rowids(
        of leaf: UInt32, _ pages: SnapshotPages, _ memory: borrowing Memory
    ) throws -> (first: Int64, last: Int64) {
        let page = try page(leaf, pages, memory.page)
        guard page.kind == .tableLeaf, page.cellCount > 0 else { throw DamagedPage(leaf, .cellCount) }
        return (try page.cell(at: 0).rowid, try page.cell(at: page.cellCount - 1).rowid)
    }
}
