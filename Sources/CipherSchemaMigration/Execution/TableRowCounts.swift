internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The numbers of rows and values in a table, at one point of a migration.
struct TableRowCounts {
    /// A table of one of the connection's databases.
    struct Name: Hashable {
        let schema: SQLName
        let table: SQLName

        init(_ table: String, in schema: String = "main") {
            self.schema = SQLName(schema)
            self.table = SQLName(table)
        }

        /// The schema table; engines before SQLite 3.33 know the schema table of `temp` only by this name.
        var catalog: SQL {
            schema == SQLName("temp")
                ? "sqlite_temp_master" : SQL(text: "\(SQL.quoted(identifier: schema.text)).sqlite_master")
        }

        var isOfSystem: Bool { table.isOfSQLite || table.isOfCipherStore }

        /// Returns 0 for a table that existed before the migration, 1 for any other table.
        func rank(_ users: Set<Name>) -> Int { users.contains(self) ? 0 : 1 }
    }

    /// The table's name as the schema spells it.
    let table: String
    /// The table's root page, which a rename does not change.
    let root: Int
    let rows: Int
    /// The number of values in each column, in order; `nil` if only rows were counted.
    ///
    /// Generated columns store no values and are left out.
    let values: [(column: String, count: Int)]?
    let indexes: [String]

    /// Counts the rows, and also the values if `countsValues` is true.
    ///
    /// - Returns: `nil` if there is no such table, or if it cannot be read without the app's own modules.
    init?(_ name: Name, _ connection: Connection, countsValues: Bool) throws {
        guard let found = try Self.find(name, connection) else { return nil }
        let schema = SQL(text: SQL.quoted(identifier: name.schema.text))
        (table, root) = found
        var indexes: [String] = []
        try connection.forEachRow(
            """
            SELECT name FROM \(name.catalog)
            WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = \(name.table.text) COLLATE NOCASE ORDER BY name
            """
        ) { indexes.append(try $0.get(at: 0)) }
        self.indexes = indexes
        let columns = try countsValues && root > 0 ? Self.columns(of: table, in: name, connection) : nil
        // A table may have so many columns that their counts and the count of rows do not fit into one result row.
        var numbers: [Int] = []
        do {
            for start in stride(from: 0, through: max((columns?.count ?? 0) - 1, 0), by: 1_000) {
                let counts = (columns ?? []).dropFirst(start).prefix(1_000)
                    .reduce("") { "\($0), count(\($1))" as SQL }
                try connection.forEachRow("SELECT count(1)\(counts) FROM \(schema).\(identifier: table)") { row in
                    numbers += try ((start == 0 ? 0 : 1)..<row.count).map { try row.get(at: $0) }
                }
            }
        } catch let error as DatabaseError {
            guard root == 0 else { throw error }
            return nil
        }
        rows = numbers.first ?? 0
        values = columns.map { zip($0, numbers.dropFirst()).map { ($0.text, $1) } }
    }

    /// Returns the columns that are not generated, in order.
    static func columns(of table: String, in name: Name, _ connection: Connection) throws -> [SchemaName] {
        try ColumnState.read(table: table, in: name.schema.text, from: connection)
            .filter { $0.generation == nil }.map(\.schemaName)
    }

    /// Returns the name of a table as the schema spells it, and its root page, which is 0 for a virtual table.
    static func find(_ name: Name, _ connection: Connection) throws -> (name: String, root: Int)? {
        var found: (name: String, root: Int)?
        try connection.forEachRow(
            """
            SELECT name, coalesce(rootpage, 0) FROM \(name.catalog)
            WHERE type = 'table' AND name = \(name.table.text) COLLATE NOCASE
            """
        ) { found = (try $0.get(at: 0), try $0.get(at: 1)) }
        return found
    }

    /// Returns the tables with the root page `root`, which a rename does not change, in the schema of `name`.
    static func tables(at root: Int, in name: Name, _ connection: Connection) throws -> [String] {
        return try connection.values(
            String.self,
            "SELECT name FROM \(name.catalog) WHERE type = 'table' AND coalesce(rootpage, 0) = \(root)")
    }

    static func isTrigger(_ name: String, _ connection: Connection) throws -> Bool {
        try connection.value(
            Bool.self,
            """
            SELECT EXISTS (SELECT 1 FROM (SELECT type, name FROM main.sqlite_master UNION ALL
            SELECT type, name FROM sqlite_temp_master) WHERE type = 'trigger' AND name = \(name) COLLATE NOCASE)
            """) ?? false
    }

    /// Returns whether adding a row to a table may remove other rows, through a constraint of the table or through its
    /// module.
    static func replacesRows(_ name: Name, _ connection: Connection) throws -> Bool {
        var replacesRows = false
        try connection.forEachRow(
            """
            SELECT rootpage IS NULL OR rootpage = 0, sql FROM \(name.catalog)
            WHERE type = 'table' AND name = \(name.table.text) COLLATE NOCASE
            """
        ) { row in
            let hasNoTree = try row.get(Bool.self, at: 0)
            replacesRows = replacesRows || hasNoTree || row.holds("replace", at: 1)
        }
        return replacesRows
    }

    /// Returns the number of values in a column; `nil` if there is no such column, or values were not counted.
    func values(of column: String) -> Int? {
        values?.first { SQLName($0.column) == SQLName(column) }?.count
    }
}
