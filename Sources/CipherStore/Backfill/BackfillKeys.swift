internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The order in which a backfill visits a table: by ascending rowid, or by ascending primary key.
struct BackfillKeys {
    let table: String
    /// The columns of the key as SQL.
    private let columns: [String]

    /// - Throws: ``StoreError`` with the code `misuse` if the table does not exist or does not have such a key.
    init(_ table: String, byRowID: Bool, _ connection: Connection) throws {
        func misuse(_ problem: String, _ advice: String) -> StoreError {
            StoreError(
                .misuse, path: connection.path, "the backfill of \(table) cannot run: \(problem)", advice: advice)
        }
        guard try Self.isThere(table, connection) else {
            throw misuse("the table does not exist", "check the table's name")
        }
        self.table = table
        let all = try ColumnState.read(table: table, from: connection)
        let rowID = try Self.rowID(of: table, all, connection)
        if byRowID {
            guard let rowID else {
                throw misuse(
                    "the table has no rowids",
                    "for a WITHOUT ROWID table, use the argument label \"keysOf:\" instead of \"of:\"")
            }
            columns = [rowID]
        } else {
            let key = all.primaryKey
            // In other tables, a primary key may contain NULL, which compares as neither less nor greater than any
            // value.
            guard rowID == nil, !key.isEmpty else {
                throw misuse(
                    "the table is not a WITHOUT ROWID table",
                    "use the argument label \"of:\" instead of \"keysOf:\"")
            }
            columns = key.map { SQL.quoted(column: $0.name) }
        }
    }

    static func isThere(_ table: String, _ connection: Connection) throws -> Bool {
        try connection.value(
            Bool.self,
            """
            SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = \(table) COLLATE NOCASE)
            """) == true
    }

    /// The number of columns of a key.
    var count: Int { columns.count }

    /// Returns a name of the rowid that is not the name of a column; `nil` for a table without a rowid.
    ///
    /// It must not be quoted, because SQLite might take the quoted name for a string.
    private static func rowID(of table: String, _ columns: [ColumnState], _ connection: Connection) throws -> String? {
        guard let alias = columns.rowIDAlias else { return nil }
        do {
            _ = try connection.value(
                Int64.self, SQL(text: "SELECT \(alias) FROM main.\(SQL.quoted(identifier: table)) LIMIT 0"))
            return alias
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            return nil
        }
    }

    /// Returns the keys of the next rows after the checkpoint, in order.
    func next(_ limit: Int, of name: String, _ connection: Connection) throws -> [[Value]] {
        var keys: [[Value]] = []
        let rows = try rows(behind: name, connection)
        try connection.forEachRow("SELECT \(list) \(rows) ORDER BY \(list) LIMIT \(limit)") { row in
            keys.append((0..<row.count).map { row.value(at: $0) })
        }
        return keys
    }

    /// Returns the number of rows after the checkpoint.
    func remaining(of name: String, _ connection: Connection) throws -> Int {
        try connection.value(Int.self, "SELECT count(*) \(rows(behind: name, connection))") ?? 0
    }

    /// Moves the checkpoint past the next rows.
    ///
    /// This happens inside SQLite so that every key is stored exactly as it is, even text that is not valid UTF-8.
    func moveCheckpoint(of name: String, over rows: Int, _ connection: Connection) throws {
        let marks = SQL(text: columns.indices.map(BackfillTable.keyColumn).joined(separator: ", "))
        let last: SQL = "\(try self.rows(behind: name, connection)) ORDER BY \(list) LIMIT 1 OFFSET \(rows - 1)"
        try connection.execute(
            "UPDATE main.cipherstore_backfill SET (\(marks)) = (SELECT \(list) \(last)) WHERE name = \(name)")
    }

    private var list: SQL { SQL(text: columns.joined(separator: ", ")) }

    /// Returns a FROM clause for the rows after the checkpoint, in a form that lets SQLite seek directly to the first
    /// of them.
    private func rows(behind name: String, _ connection: Connection) throws -> SQL {
        let source: SQL = "FROM main.\(identifier: table)"
        // Before the first batch there is no checkpoint, and no part of such a key is ever NULL.
        let isBegun = try connection.value(
            Bool.self, "SELECT key0 IS NOT NULL FROM main.cipherstore_backfill WHERE name = \(name)")
        guard isBegun == true else { return source }
        let marks = columns.indices.map { index -> SQL in
            "(SELECT \(SQL(text: BackfillTable.keyColumn(index))) FROM main.cipherstore_backfill WHERE name = \(name))"
        }
        guard columns.count > 1 else { return "\(source) WHERE \(list) > \(marks[0])" }
        let key = marks.dropFirst().reduce(marks[0]) { "\($0), \($1)" }
        return "\(source) WHERE (\(list)) > (\(key))"
    }
}
