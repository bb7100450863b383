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

    package func column(_ name: String) -> ColumnState? {
        let wanted = SQLName(name)
        return columns.first { SQLName($0.name) == wanted }
    }
}
