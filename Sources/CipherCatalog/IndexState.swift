package import CipherSQLite

/// An index as it is in the database, including an index that SQLite created for a UNIQUE or PRIMARY KEY constraint.
package struct IndexState {
    /// The origin of an index.
    package enum Origin: String { case statement = "c", unique = "u", primaryKey = "pk" }

    /// A column of the index's entries.
    package struct Part {
        /// The column of the table, from 0; -1 is the rowid and -2 an expression.
        package let position: Int
        /// The column's name; `nil` for the rowid and an expression.
        package let name: SchemaName?
        package let isDescending: Bool
        package let collation: SchemaName?
        /// Whether the index sorts by the column; the other columns identify the row.
        package let isKey: Bool

        package var isExpression: Bool { position == -2 }
    }

    package let name: SchemaName
    package let isUnique: Bool
    package let origin: Origin
    /// Whether the index has a condition.
    package let isPartial: Bool

    /// Returns the indexes of a table, and the primary key of a WITHOUT ROWID table; empty if there is no such table.
    ///
    /// Source: SQLite, "PRAGMA index_list".
    package static func read(table: SchemaName, from connection: Connection) throws -> [IndexState] {
        var indexes: [IndexState] = []
        try connection.forEachRow("PRAGMA main.index_list(\(table))") { row in
            indexes.append(
                IndexState(
                    name: try row.get(at: 1), isUnique: try row.get(at: 2),
                    origin: Origin(rawValue: try row.get(at: 3)) ?? .statement, isPartial: try row.get(at: 4)))
        }
        return indexes
    }

    /// Returns the columns of the index's entries.
    ///
    /// Source: SQLite, "PRAGMA index_xinfo".
    package func parts(_ connection: Connection) throws -> [Part] { try Self.parts(of: name, connection) }

    /// Returns the columns of an index's entries, by the index's name.
    package static func parts(of name: SchemaName, _ connection: Connection) throws -> [Part] {
        var parts: [Part] = []
        try connection.forEachRow("PRAGMA main.index_xinfo(\(name))") { row in
            parts.append(
                Part(
                    position: try row.get(at: 1), name: try row.get(at: 2), isDescending: try row.get(at: 3),
                    collation: try row.get(at: 4), isKey: try row.get(at: 5)))
        }
        return parts
    }
}
