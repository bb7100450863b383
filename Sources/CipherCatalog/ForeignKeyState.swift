package import CipherSQLite

/// A foreign key as the database has it, in a schema whose names are text.
package struct ForeignKeyState {
    /// Its number in the table, which `PRAGMA foreign_key_check` tells too.
    package let id: Int
    package let parent: String
    /// The columns of the table with those of the parent, which are missing where its primary key is meant.
    package private(set) var columns: [(child: String, parent: String?)] = []
    /// What an update and a deletion in the parent do, and the word of MATCH.
    package let rules: [String]

    /// The foreign keys of a table, in the order in which SQLite tells them.
    ///
    /// Source: SQLite, "PRAGMA foreign_key_list": a row for each column, those of one key together and in its order.
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
