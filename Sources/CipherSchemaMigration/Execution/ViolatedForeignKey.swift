internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// A foreign key that rows of its table violate, as SQLite found.
struct ViolatedForeignKey {
    let parent: String
    let columns: [String]
    /// A SELECT of the rows: the values of the columns, then the rowid or the primary key.
    let violations: String

    /// - Throws: `DatabaseError` where SQLite cannot check the table.
    static func all(
        of table: TableState, among tables: [TableState], _ connection: Connection
    ) throws -> [ViolatedForeignKey] {
        var keys: [Int: Key] = [:]
        // By key, and in each by the place of the column.
        try connection.forEachRow("PRAGMA main.foreign_key_list(\(identifier: table.name))") { row in
            let number = try row.get(Int.self, at: 0)
            var key = try keys[number] ?? Key(parent: row.get(at: 2))
            key.pairs.append((try row.get(at: 3), try row.get(at: 4)))
            keys[number] = key
        }
        var violated: Set<Int> = []
        try connection.forEachRow("PRAGMA main.foreign_key_check(\(identifier: table.name))") { row in
            violated.insert(try row.get(at: 3))
        }
        guard !violated.isEmpty else { return [] }
        // Older engines give a number for the rows of WITHOUT ROWID tables too.
        let hasRowID = table.hasRowID
        return violated.sorted().compactMap { number in
            guard let key = keys[number] else { return nil }
            let parent = tables.first { SQLName($0.name) == SQLName(key.parent) }
            let identity = hasRowID ? table.rowIDAlias.map { [$0] } ?? [] : table.primaryKey
            return ViolatedForeignKey(
                parent: key.parent, columns: key.pairs.map(\.child),
                violations: key.violations(of: table, in: parent, identity))
        }
    }

    private struct Key {
        let parent: String
        /// The column of the parent is missing where its primary key is meant.
        var pairs: [(child: String, parent: String?)] = []

        /// The parent's affinity and collation decide, so its column stands on the left and the child's has no affinity.
        ///
        /// Source: SQLite, "SQLite Foreign Key Support", section 3, and "Datatypes In SQLite", section 4.2.
        func violations(of table: TableState, in parent: TableState?, _ identity: [String]) -> String {
            func child(_ column: String) -> String { "child.\(SQL.quoted(identifier: column))" }
            let selected = (pairs.map(\.child) + identity).map(child).joined(separator: ", ")
            var conditions = pairs.map { "\(child($0.child)) IS NOT NULL" }
            if let parent {
                let primaryKey = parent.primaryKey
                let matches = pairs.enumerated().map { index, pair in
                    let key = pair.parent ?? (primaryKey.indices.contains(index) ? primaryKey[index] : pair.child)
                    return "parent.\(SQL.quoted(identifier: key)) = +\(child(pair.child))"
                }
                conditions.append(
                    "NOT EXISTS (SELECT 1 FROM main.\(SQL.quoted(identifier: parent.name)) AS parent "
                        + "WHERE \(matches.joined(separator: " AND ")))")
            }
            return "SELECT \(selected) FROM main.\(SQL.quoted(identifier: table.name)) AS child "
                + "WHERE \(conditions.joined(separator: " AND "))"
        }
    }
}

extension TableState {
    /// The columns of the primary key, in its order.
    fileprivate var primaryKey: [String] { columns.primaryKey.map(\.name) }

    fileprivate var hasRowID: Bool { sql.flatMap(TableText.init)?.hasOption("without", "rowid") != true }

    /// A name of the rowid that no column has taken, where it is not WITHOUT ROWID.
    fileprivate var rowIDAlias: String? { SQLName.ofRowID(besides: columns.map { SQLName($0.name) }) }
}
