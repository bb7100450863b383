internal import CipherSQLite

// The proof has its own code for asking SQLite about tables and indexes and for comparing names. The builder uses
// CipherCatalog: a fault in shared code would affect both the copy and the data with which it is compared.

/// The columns of a table that are stored on disk.
package struct TableColumns: Sendable {
    /// A column whose value is stored.
    package struct Stored: Sendable {
        package let name: SchemaName
        /// The column's position among all columns of the table, from 0.
        package let position: Int
        package let isNotNull: Bool
        /// Whether the column is part of the primary key.
        package let isInKey: Bool
    }

    /// The columns whose values are stored, in order.
    ///
    /// Generated columns are included only if they are STORED.
    let stored: [Stored]
    /// The number of columns of the table, stored or not.
    let count: Int
    /// A name of the rowid that no column uses.
    ///
    /// `nil` if columns use all three names, so that SQL cannot name the rowid.
    let rowidAlias: String?

    init(_ table: SchemaName, _ connection: Connection) throws {
        var stored: [Stored] = []
        var count = 0
        var aliases = ["rowid", "_rowid_", "oid"]
        let hasHidden = Engine.current.hasGeneratedColumns
        let pragma: SQL = hasHidden ? "PRAGMA main.table_xinfo" : "PRAGMA main.table_info"
        try connection.forEachRow("\(pragma)(\(table))") { row in
            let name = try row.get(SchemaName.self, at: 1)
            aliases.removeAll { name.folded.elementsEqual($0.utf8) }
            // A VIRTUAL generated column is computed and not stored.
            if try !hasHidden || row.get(Int.self, at: 6) != 2 {
                stored.append(
                    Stored(
                        name: name, position: count, isNotNull: try row.get(Int.self, at: 3) != 0,
                        isInKey: try row.get(Int.self, at: 5) > 0))
            }
            count += 1
        }
        self.stored = stored
        self.count = count
        rowidAlias = aliases.first
    }
}

/// An index of a table, or the primary key of a table WITHOUT ROWID.
struct ListedIndex {
    let name: SchemaName
    let isUnique: Bool
    let isKey: Bool
    let isPartial: Bool

    static func all(of table: SchemaName, _ connection: Connection) throws -> [ListedIndex] {
        var indexes: [ListedIndex] = []
        try connection.forEachRow("PRAGMA index_list(\(table))") { row in
            indexes.append(
                ListedIndex(
                    name: try row.get(at: 1), isUnique: try row.get(Int.self, at: 2) != 0,
                    isKey: try row.get(String.self, at: 3) == "pk", isPartial: try row.get(Int.self, at: 4) != 0))
        }
        return indexes
    }
}
