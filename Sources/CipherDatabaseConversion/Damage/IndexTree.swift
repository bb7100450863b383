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

    /// Searches for an index whose tree holds records that are not its entries: they have another number of values, or
    /// do not end with a rowid although the table has rowids.
    ///
    /// The rows of a table WITHOUT ROWID are stored in trees of the same kind as those of indexes. If such roots are
    /// swapped in the schema table, or if page 1 is older than the tree, a copy without the index's tree would lose the
    /// rows. If the schema has no such table, records that end with an integer count as entries: the integer may be a
    /// rowid, and the index may have had another definition.
    ///
    /// - Parameter onlyPartial: Whether to read only partial indexes, which nothing else compares.
    /// - Returns: The finding, as a sentence; `nil` if there is no such index.
    /// - Throws: ``StoreError`` with the code `corrupt` if such an index was found and the schema has a table WITHOUT
    ///   ROWID; any error from reading `pages`.
    static func foreignRecords(
        _ pages: some PageSource, _ connection: Connection, _ path: String, onlyPartial: Bool = false
    ) throws -> String? {
        let trees = try all(connection)
        let hasKeys = trees.contains { $0.key != nil }
        for tree in trees where !onlyPartial || tree.state.isPartial {
            let width = try tree.state.parts(connection).count
            guard let found = try tree.foreignWidth(besides: width, pages, evenWithRowIDs: hasKeys) else { continue }
            let what =
                found == width
                ? "without a rowid" : "with \(found) value\(found == 1 ? "" : "s") instead of \(width)"
            let finding =
                "index \(tree.state.name) of table \(tree.table) contains records \(what): these records may be rows of "
                + "a table"
            guard !hasKeys else { throw StoreError.damaged(path, finding) }
            return finding
        }
        return nil
    }

    /// Searches for a page whose records are all well-formed and are not entries, and returns the number of their
    /// values; `nil` if there is no such page.
    ///
    /// - Parameters:
    ///   - width: The number of values of an entry.
    ///   - evenWithRowIDs: Whether records of another width that end with an integer count.
    private func foreignWidth(besides width: Int, _ pages: some PageSource, evenWithRowIDs: Bool) throws -> Int? {
        var cursor = TreeCursor(pages, root: UInt32(clamping: root))
        var others: [UInt32: Int] = [:]
        var mixed: Set<UInt32> = []
        while true {
            do {
                guard let cell = try cursor.next() else { break }
                guard cursor.isOfTable == false else { return nil }
                do {
                    let (found, endsWithInteger) = try Self.countValues(cursor.payload(of: cell), cell.page)
                    let isEntry = found == width && (key != nil || endsWithInteger)
                    if isEntry || endsWithInteger && !evenWithRowIDs {
                        mixed.insert(cell.page)
                    } else {
                        others[cell.page] = found
                    }
                } catch is DamagedPage {
                    mixed.insert(cell.page)
                }
            } catch let damage as DamagedPage {
                mixed.insert(damage.page)
            }
        }
        return others.filter { !mixed.contains($0.key) }.min { $0.key < $1.key }?.value
    }

    private static func countValues(
        _ payload: UnsafeRawBufferPointer, _ page: UInt32
    ) throws -> (count: Int, endsWithInteger: Bool) {
        var record = try RecordReader(payload, page: page)
        var (count, endsWithInteger) = (0, false)
        while let value = try record.next() {
            count += 1
            if case .integer = value { endsWithInteger = true } else { endsWithInteger = false }
        }
        return (count, endsWithInteger)
    }
}
