internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The tables that may have had the name of an old table that no longer exists.
///
/// The evidence is the order in which tables were created: an upgrade creates the new table after everything that its
/// rename affected, and SQLite adds rows to `sqlite_master` in that order.
struct TableOrigins {
    private let name: SQLName
    private let wanted: WantedSchema
    private let state: DatabaseState
    /// The position of each table in that order.
    private var places: [SQLName: Int64] = [:]
    /// The tables that once had the name, according to foreign keys of tables whose declaration shows the intended
    /// parent.
    private var shown: Set<SQLName> = []

    init(of name: String, wanted: WantedSchema, state: DatabaseState) throws {
        self.name = SQLName(name)
        self.wanted = wanted
        self.state = state
        var places: [SQLName: Int64] = [:]
        try state.connection.forEachRow("SELECT name, rowid FROM main.sqlite_master WHERE type = 'table'") { row in
            places[SQLName(try row.get(at: 0))] = try row.get(Int64.self, at: 1)
        }
        self.places = places
        for child in state.tables where child.references.contains(self.name) {
            for key in try TableShape(child, in: state.connection).facts.foreignKeys
            where key.parent == self.name {
                if let parent = try parent(of: key, in: child.name) { shown.insert(SQLName(parent)) }
            }
        }
    }

    /// Returns the table to which a foreign key refers; `nil` if it can refer to several tables, or to none.
    func parent(of key: TableShape.ForeignKey, in child: String) throws -> String? {
        let declared = wanted.table(child)?.facts.foreignKeys.first {
            $0.columns.map(\.first) == key.columns.map(\.first)
        }
        let fitting = wanted.tables.filter { table in
            state.table(table.name) != nil && isNewer(table.name, than: child)
                && declared.map { $0.parent == SQLName(table.name) } ?? hasKey(table, for: key)
        }
        return fitting.count == 1 ? fitting.first?.name : nil
    }

    /// Returns the table that had the name last; `nil` if there is no evidence.
    func latest(of tables: [String]) -> String? {
        guard tables.count > 1 else { return tables.first }
        let had = tables.filter { shown.contains(SQLName($0)) }
        guard let table = had.first, had.count == 1 else { return nil }
        return tables.allSatisfy { $0 == table || isNewer(table, than: $0) } ? table : nil
    }

    private func isNewer(_ table: String, than other: String) -> Bool {
        guard let place = places[SQLName(table)], let otherPlace = places[SQLName(other)] else { return false }
        return place > otherPlace
    }

    /// Returns whether a table has the columns that a foreign key references, and they are a key of the table.
    private func hasKey(_ table: TableShape, for key: TableShape.ForeignKey) -> Bool {
        let primary = Set(table.columns.primaryKey.map { SQLName($0.name) })
        let named = Set(key.columns.compactMap { $0.last ?? nil })
        guard !named.isEmpty else { return primary.count == key.columns.count }
        return named == primary || table.facts.keys.contains { Set($0.parts.map(\.column)) == named }
    }
}
