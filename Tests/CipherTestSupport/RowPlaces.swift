public import CipherSQLite
internal import CipherSQLiteFormat

/// The rows of a healthy database with the pages of each, for judging what a recovery finds.
///
/// Tables WITHOUT ROWID must have their key as their first columns.
public struct RowPlaces {
    /// A row by its table and its rowid, or by all of its values.
    public struct Key: Hashable, Sendable, CustomStringConvertible {
        /// The table.
        public let table: String
        /// The rowid, or all values.
        public let key: String
        /// The table and the rowid or values.
        public var description: String { "\(table) \(key)" }
    }

    /// The values of each row as text.
    public let rows: [Key: String]
    /// The pages of each row, including its overflow pages.
    public private(set) var pages: [Key: Set<UInt32>] = [:]
    /// For each table and index: all pages of its tree, including overflow pages.
    public private(set) var pagesOfTrees: [String: Set<UInt32>] = [:]
    /// For each table: its root.
    public private(set) var roots: [String: UInt32] = [:]
    /// The interior pages of each tree.
    public private(set) var interior: [String: Set<UInt32>] = [:]
    /// The overflow pages of all trees.
    public private(set) var overflow: Set<UInt32> = []
    /// For each row with a rowid and each index that names it: the pages from the index's root to the index's entry.
    public private(set) var entries: [Key: [Set<UInt32>]] = [:]
    /// The page that leads to each page of a tree.
    private var parents: [UInt32: UInt32] = [:]
    /// The page on which each row begins.
    private var leaves: [Key: UInt32] = [:]
    /// The pointer map, if there is one.
    private var map: PointerMap?
    /// The trunks of the free list.
    public private(set) var freeTrunks: Set<UInt32> = []
    /// The pages that the trunks list.
    public private(set) var freeLeaves: Set<UInt32> = []

    /// Reads a plaintext database that is intact and closed.
    package init(_ path: String) throws {
        let connection = try Connection(path: path, mode: .readOnly)
        defer { connection.close() }
        rows = try Self.rows(connection)
        guard let source = try FilePages(HeldBytes(contentsOf: path)) else { return }
        let keyed = try Self.keyedTables(connection)
        var trees: [(name: String, table: String, isTable: Bool, root: UInt32)] = []
        try connection.forEachRow(
            "SELECT name, tbl_name, type = 'table', rootpage FROM sqlite_master WHERE rootpage > 0"
        ) { row in
            trees.append(
                (try row.get(at: 0), try row.get(at: 1), try row.get(at: 2), UInt32(try row.get(Int64.self, at: 3))))
        }
        for tree in trees {
            roots[tree.name] = tree.root
            try add(tree.name, isTable: tree.isTable, isKeyed: keyed.contains(tree.name), tree.root, source)
            if !tree.isTable, !keyed.contains(tree.table) { try addEntries(of: tree.table, tree.root, source) }
        }
        if let header = try FileHeader(of: HeldBytes(contentsOf: path)) {
            let list = try FreeList(in: source, first: header.firstFreePage) { throw $0 }
            map = header.hasPointerMap ? PointerMap(source.geometry) : nil
            (freeTrunks, freeLeaves) = (Set(list.trunks), Set(list.leaves))
        }
    }

    /// Records which rows an index names, and the pages that lead to their entries.
    private mutating func addEntries(of table: String, _ root: UInt32, _ source: some PageSource) throws {
        let claims = Recorder()
        var cursor = TreeCursor(source, root: root, claims: claims)
        var found: [(key: Key, leaf: UInt32, pages: Set<UInt32>)] = []
        while let cell = try cursor.next() {
            let before = claims.overflow.count
            var record = try RecordReader(try cursor.payload(of: cell), page: cell.page)
            var last: RecordValue?
            while let value = try record.next() { last = value }
            guard case .integer(let rowid) = last else { continue }
            let pages = Set(claims.overflow[before...]).union([cell.page])
            found.append((Key(table: table, key: "\(rowid)"), cell.page, pages))
        }
        for (key, leaf, own) in found {
            entries[key, default: []].append(own.union(path(to: leaf)))
        }
    }

    private mutating func add(
        _ name: String, isTable: Bool, isKeyed: Bool, _ root: UInt32, _ source: some PageSource
    ) throws {
        let claims = Recorder()
        var cursor = TreeCursor(source, root: root, claims: claims)
        var withRows: Set<UInt32> = []
        while let cell = try cursor.next() {
            let before = claims.overflow.count
            let payload = try cursor.payload(of: cell)
            withRows.insert(cell.page)
            guard isTable else { continue }
            let own = Set(claims.overflow[before...]).union([cell.page])
            let key = try isKeyed ? Self.text(payload, cell.page) : "\(cell.rowid)"
            pages[Key(table: name, key: key)] = own
            leaves[Key(table: name, key: key)] = cell.page
        }
        pagesOfTrees[name] = Set(claims.tree + claims.overflow)
        overflow.formUnion(claims.overflow)
        interior[name] = Set(claims.tree).subtracting(withRows)
        try addParents(claims.tree, source)
    }

    private mutating func addParents(_ pages: [UInt32], _ source: some PageSource) throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: source.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        for number in pages {
            guard let bytes = try source.lend(number, memory) else { continue }
            let page = try TreePage(bytes, number: number, source.geometry)
            guard !page.kind.isLeaf else { continue }
            parents[page.rightChild] = number
            for index in 0..<page.cellCount { parents[try page.child(at: index)] = number }
        }
    }

    /// A page of a tree, and the pages above it.
    private func path(to page: UInt32) -> Set<UInt32> {
        var (page, pages) = (page, Set([page]))
        while let parent = parents[page] {
            pages.insert(parent)
            page = parent
        }
        return pages
    }

    /// Returns whether a pointer map shows the page on which a row begins and all pages above it, if some pages are
    /// lost.
    public func isMapped(_ key: Key, without lost: Set<UInt32>) -> Bool {
        guard let map, let leaf = leaves[key] else { return false }
        return path(to: leaf).allSatisfy { page in map.mapPage(of: page).map { !lost.contains($0) } ?? false }
    }

    private static func text(_ payload: UnsafeRawBufferPointer, _ page: UInt32) throws -> String {
        var record = try RecordReader(payload, page: page)
        var parts: [String] = []
        while let value = try record.next() {
            switch value {
            case .null: parts.append("null")
            case .integer(let number): parts.append("\(Value.integer(number))")
            case .real(let number): parts.append("\(Value.real(number))")
            case .text(let bytes): parts.append("\(Value.text(String(decoding: bytes, as: UTF8.self)))")
            case .blob(let bytes): parts.append("\(Value.blob([UInt8](bytes)))")
            }
        }
        return parts.joined(separator: "|")
    }

    private static func keyedTables(_ connection: Connection) throws -> Set<String> {
        var keyed: Set<String> = []
        for name in try tables(connection) {
            if (try? connection.value(Int64.self, SQL(text: "SELECT rowid FROM \"\(name)\" LIMIT 1"))) == nil,
                (try? Statement(SQL(text: "SELECT rowid FROM \"\(name)\""), on: connection)) == nil
            {
                keyed.insert(name)
            }
        }
        return keyed
    }

    private static func tables(_ connection: Connection) throws -> [String] {
        try connection.values(
            String.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name")
    }

    /// Returns all rows of all tables, as SQL reads them.
    public static func rows(_ connection: Connection) throws -> [Key: String] {
        var rows: [Key: String] = [:]
        let keyed = try keyedTables(connection)
        for name in try tables(connection) {
            let isKeyed = keyed.contains(name)
            try connection.forEachRow(SQL(text: "SELECT \(isKeyed ? "" : "rowid, ")* FROM \"\(name)\"")) { row in
                let values = (0..<row.count).map { index in
                    row.isNull(at: index) ? "null" : "\(row.value(at: index))"
                }
                let all = values.dropFirst(isKeyed ? 0 : 1).joined(separator: "|")
                let key: String
                if isKeyed { key = all } else { key = "\(try row.get(Int64.self, at: 0))" }
                rows[Key(table: name, key: key)] = all
            }
        }
        return rows
    }

    /// Returns the rows none of whose pages are among these.
    public func whole(without lost: Set<UInt32>) -> Set<Key> {
        Set(pages.filter { $0.value.isDisjoint(with: lost) }.keys)
    }
}

/// Records which pages are reached.
private final class Recorder: PageClaims {
    private let set = PageSet()
    var tree: [UInt32] = []
    var overflow: [UInt32] = []

    func claim(_ page: UInt32, for use: PageUse) -> Bool {
        guard set.claim(page, for: use) else { return false }
        if case .overflow = use { overflow.append(page) } else { tree.append(page) }
        return true
    }
}
