internal import CipherSQLText

/// The objects that need a column, and would break if it were dropped.
struct ColumnUsers {
    /// The views, triggers and virtual tables that will exist afterwards.
    let objects: [DatabaseState.Object]
    /// The tables that will exist afterwards.
    let tables: [TableShape]

    /// Returns a description of an object that uses the column; it may name an object that does not use the column, but
    /// never misses one that does.
    func user(of column: String, in table: String) -> String? {
        let (column, table) = (SQLName(column), SQLName(table))
        let object = objects.first { object in
            object.type != "index" && column.isMentioned(in: object.sql)
                && (SQLName(object.table) == table || table.isMentioned(in: object.sql))
        }
        if let object { return "the \(object.type) \(object.name)" }
        let child = tables.first { child in
            child.facts.foreignKeys.contains { key in
                key.parent == table && key.columns.contains { $0.last == .some(column) }
            }
        }
        return child.map { "a foreign key of \($0.name)" }
    }
}
