/// A table as SQLite sees it, together with its text.
package struct TableShape: Sendable, Equatable {
    /// The table's name.
    package var name: String
    /// Its CREATE statement, as `sqlite_master` keeps it.
    package var sql: String
    /// Its columns, generated ones too.
    package var columns: [ColumnState]
}
