internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// An index of the original with its b-tree.
struct IndexTree {
    let state: IndexState
    let root: Int64
    let table: SchemaName
    let tableRoot: Int64
    /// The primary key of a table WITHOUT ROWID; `nil` for a table with rowids.
    let key: IndexState?

    /// Returns the indexes of all tables.
    static func all(_ connection: Connection) throws -> [IndexTree] {
        var tables: [(name: SchemaName, root: Int64)] = []
        var roots: [SchemaName: Int64] = [:]
        try connection.forEachRow("SELECT type = 'table', name, rootpage FROM main.sqlite_master WHERE rootpage > 0") {
            if try $0.get(Bool.self, at: 0) {
                tables.append((try $0.get(at: 1), try $0.get(at: 2)))
            } else {
                roots[try $0.get(at: 1)] = try $0.get(at: 2)
            }
        }
        return try tables.flatMap { table, tableRoot in
            let listed = try IndexState.read(table: table, from: connection)
            // The key of a table WITHOUT ROWID is the table itself.
            let key = listed.first { $0.origin == .primaryKey && roots[$0.name] == nil }
            return listed.compactMap { state in
                roots[state.name].map {
                    IndexTree(state: state, root: $0, table: table, tableRoot: tableRoot, key: key)
                }
            }
        }
    }

    /// Refuses indexes whose trees hold records with a different number of values than their entries have.
    ///
    /// The rows of a table WITHOUT ROWID are stored in trees of the same kind as those of indexes. If such roots are
    /// swapped in the schema table, a copy without the index's tree would lose the rows.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt`; any error from reading `pages`.
    static func checkRecords(of trees: [IndexTree], _ pages: some PageSource, _ connection: Connection, _ path: String)
        throws
    {
        guard trees.contains(where: { $0.key != nil }) else { return }
        for tree in trees {
            let width = try tree.state.parts(connection).count
            guard let found = try tree.otherWidth(than: width, pages) else { continue }
            throw StoreError.damaged(
                path,
                "index \(tree.state.name) of table \(tree.table) contains records with \(found) "
                    + "value\(found == 1 ? "" : "s") instead of \(width): these records may be rows of a table")
        }
    }

    /// Searches for a page whose records are all well-formed and have a different number of values, and returns that
    /// number; `nil` if there is no such page.
    private func otherWidth(than width: Int, _ pages: some PageSource) throws -> Int? {
        var cursor = TreeCursor(pages, root: UInt32(clamping: root))
        var others: [UInt32: Int] = [:]
        var mixed: Set<UInt32> = []
        while true {
            do {
                guard let cell = try cursor.next() else { break }
                guard cursor.isOfTable == false else { return nil }
                do {
                    let found = try Self.countValues(cursor.payload(of: cell), cell.page)
                    if found == width { mixed.insert(cell.page) } else { others[cell.page] = found }
                } catch is DamagedPage {
                    mixed.insert(cell.page)
                }
            } catch let damage as DamagedPage {
                mixed.insert(damage.page)
            }
        }
        return others.filter { !mixed.contains($0.key) }.min { $0.key < $1.key }?.value
    }

    private static func countValues(_ payload: UnsafeRawBufferPointer, _ page: UInt32) throws -> Int {
        var record = try RecordReader(payload, page: page)
        var count = 0
        while try record.next() != nil { count += 1 }
        return count
    }
}
