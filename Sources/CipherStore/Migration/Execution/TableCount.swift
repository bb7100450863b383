internal import CipherSQLite

/// How much a table holds at one moment.
struct TableCount {
    /// A table of one of the connection's databases.
    struct Name: Hashable {
        let schema: SQLName
        let table: SQLName

        init(_ table: String, in schema: String = "main") {
            self.schema = SQLName(schema)
            self.table = SQLName(table)
        }

        var isOfSystem: Bool { table.isOfSQLite || table.isOfCipherStore }
    }

    /// The name as the schema has it.
    let table: String
    /// Where SQLite keeps it: the same after a rename.
    let root: Int
    let rows: Int
    /// How many values each column holds, in order; `nil` where only rows were counted.
    ///
    /// Generated columns hold none of their own.
    let values: [(column: String, count: Int)]?
    let indexes: [String]

    /// Counts.
    ///
    /// - Returns: `nil` where there is no such table, or one that cannot be read without the app's own modules.
    init?(_ name: Name, _ connection: Connection, countsValues: Bool) throws {
        let schema = SQL(text: SQL.quoted(identifier: name.schema.text))
        var found: (name: String, root: Int)?
        try connection.forEachRow(
            """
            SELECT name, coalesce(rootpage, 0) FROM \(schema).sqlite_master
            WHERE type = 'table' AND name = \(name.table.text) COLLATE NOCASE
            """
        ) { found = (try $0.get(at: 0), try $0.get(at: 1)) }
        guard let found else { return nil }
        (table, root) = found
        var indexes: [String] = []
        try connection.forEachRow(
            """
            SELECT name FROM \(schema).sqlite_master
            WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = \(name.table.text) COLLATE NOCASE ORDER BY name
            """
        ) { indexes.append(try $0.get(at: 0)) }
        self.indexes = indexes
        let isMain = name.schema == SQLName("main")
        let columns =
            try countsValues && isMain && root > 0
            ? ColumnState.read(table: table, from: connection).filter { $0.generation == nil }.map(\.name) : nil
        let counts = (columns ?? []).map { ", count(\(SQL.quoted(column: $0)))" }.joined()
        var numbers: [Int] = []
        do {
            try connection.forEachRow(
                "SELECT count(1)\(SQL(text: counts)) FROM \(schema).\(identifier: table)"
            ) { row in numbers = try (0..<row.count).map { try row.get(at: $0) } }
        } catch let error as DatabaseError {
            guard root == 0 else { throw error }
            return nil
        }
        rows = numbers.first ?? 0
        values = columns.map { zip($0, numbers.dropFirst()).map { ($0, $1) } }
    }

    /// Whether a row that is added to a table may take others away, by a constraint of its own.
    static func replacesRows(_ name: Name, _ connection: Connection) throws -> Bool {
        let schema = SQL(text: SQL.quoted(identifier: name.schema.text))
        return try connection.value(
            Bool.self,
            """
            SELECT EXISTS (SELECT 1 FROM \(schema).sqlite_master
            WHERE type = 'table' AND name = \(name.table.text) COLLATE NOCASE AND sql LIKE '%replace%')
            """) ?? false
    }

    /// How many values a column holds; `nil` where there is no such column, or none was counted.
    func values(of column: String) -> Int? {
        values?.first { SQLName($0.column) == SQLName(column) }?.count
    }
}
