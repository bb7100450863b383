package import CipherSQLText

/// A table as the database has it.
package struct TableState: Sendable, Equatable {
    package var name: String
    /// Empty for virtual tables: asking for theirs needs their module, which may not be loaded.
    package var columns: [ColumnState]
    package var isVirtual: Bool
    /// Its CREATE statement, as `sqlite_master` keeps it.
    package var sql: String?
    /// The tables that its foreign keys refer to.
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
