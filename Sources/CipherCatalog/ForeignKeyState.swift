package import CipherSQLite

/// A foreign key as it is in the database, in a schema whose names are valid UTF-8.
package struct ForeignKeyState {
    /// The foreign key's number in the table, which `PRAGMA foreign_key_check` also reports.
    package let id: Int
    package let parent: String
    /// The columns of the table, each with the parent's column, which is `nil` if the key references the parent's
    /// primary key.
    package private(set) var columns: [(child: String, parent: String?)] = []
    /// The actions on an update and on a deletion in the parent, and the MATCH clause.
    package let rules: [String]

    /// Returns the foreign keys of a table, in the order in which SQLite reports them.
    ///
    /// Source: SQLite, "PRAGMA foreign_key_list": one row for each column; the rows of a key are together and in its
    /// order.
    package static func read(table: String, from connection: Connection) throws -> [ForeignKeyState] {
        var keys: [ForeignKeyState] = []
        try connection.forEachRow("PRAGMA main.foreign_key_list(\(identifier: table))") { row in
            let id = try row.get(Int.self, at: 0)
            if keys.last?.id != id {
                keys.append(
                    ForeignKeyState(
                        id: id, parent: try row.get(at: 2),
                        rules: [try row.get(at: 5), try row.get(at: 6), try row.get(at: 7)]))
            }
            keys[keys.count - 1].columns.append((try row.get(at: 3), try row.get(at: 4)))
        }
        return keys
    }
}
