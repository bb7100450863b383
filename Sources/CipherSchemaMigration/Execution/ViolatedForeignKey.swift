internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// A foreign key that rows of its table violate, as reported by SQLite.
struct ViolatedForeignKey {
    let parent: String
    let columns: [String]
    /// A SELECT of the violating rows: the values of the columns, then the rowid or the primary key.
    let violations: String

    /// Returns the violated foreign keys of a table.
    ///
    /// - Throws: `DatabaseError` if SQLite cannot check the table.
    static func all(
        of table: TableState, among tables: [TableState], _ connection: Connection
    ) throws -> [ViolatedForeignKey] {
        let keys = try ForeignKeyState.read(table: table.name, from: connection)
        var violated: Set<Int> = []
        try connection.forEachRow("PRAGMA main.foreign_key_check(\(identifier: table.name))") { row in
            violated.insert(try row.get(at: 3))
        }
        guard !violated.isEmpty else { return [] }
        // Older engines also report a number for the rows of WITHOUT ROWID tables.
        let hasRowID = table.hasRowID
        return violated.sorted().compactMap { number in
            guard let key = keys.first(where: { $0.id == number }) else { return nil }
            let parent = tables.first { SQLName($0.name) == SQLName(key.parent) }
            let identity = hasRowID ? table.columns.rowIDAlias.map { [$0] } ?? [] : table.primaryKey
            return ViolatedForeignKey(
                parent: key.parent, columns: key.columns.map(\.child),
                violations: violations(of: table, key, in: parent, identity))
        }
    }

    /// Returns a SELECT of the violating rows.
    ///
    /// The parent's affinity and collation apply, so its column is on the left and the child's column has no affinity.
    ///
    /// Source: SQLite, "SQLite Foreign Key Support", section 3, and "Datatypes In SQLite", section 4.2.
    private static func violations(
        of table: TableState, _ key: ForeignKeyState, in parent: TableState?, _ identity: [String]
    ) -> String {
        func child(_ column: String) -> String { "child.\(SQL.quoted(identifier: column))" }
        let selected = (key.columns.map(\.child) + identity).map(child).joined(separator: ", ")
        var conditions = key.columns.map { "\(child($0.child)) IS NOT NULL" }
        if let parent {
            let primaryKey = parent.primaryKey
            let matches = key.columns.enumerated().map { index, pair in
                let column = pair.parent ?? (primaryKey.indices.contains(index) ? primaryKey[index] : pair.child)
                return "parent.\(SQL.quoted(identifier: column)) = +\(child(pair.child))"
            }
            conditions.append(
                "NOT EXISTS (SELECT 1 FROM main.\(SQL.quoted(identifier: parent.name)) AS parent "
                    + "WHERE \(matches.joined(separator: " AND ")))")
        }
        return "SELECT \(selected) FROM main.\(SQL.quoted(identifier: table.name)) AS child "
            + "WHERE \(conditions.joined(separator: " AND "))"
    }
}

extension TableState {
    /// The columns of the primary key, in the order of the key.
    fileprivate var primaryKey: [String] { columns.primaryKey.map(\.name) }

    fileprivate var hasRowID: Bool { sql.flatMap(TableText.init)?.hasOption("without", "rowid") != true }
}
