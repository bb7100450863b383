package import CipherSQLText

/// A table as it is in the database.
package struct TableState: Sendable, Equatable {
    package var name: String
    /// The columns; empty for a virtual table, because reading its columns needs its module, which may not be loaded.
    package var columns: [ColumnState]
    package var isVirtual: Bool
    /// The CREATE statement, as `sqlite_master` stores it.
    package var sql: String?
    /// The tables that the foreign keys reference.
    package var references: [SQLName]

    package init(name: String, columns: [ColumnState], isVirtual: Bool, sql: String? = nil, references: [SQLName]) {
        self.name = name
        self.columns = columns
        self.isVirtual = isVirtual
        self.sql = sql
        self.references = references
    }

    package func column(_ name: String) -> ColumnState? {
        let wanted = SQLName(name)
        return columns.first { SQLName($0.name) == wanted }
    }
}
