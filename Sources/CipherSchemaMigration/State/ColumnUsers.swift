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
        let candidates = objects.filter { $0.type != "index" && column.isMentioned(in: $0.sql) }
        let readers = candidates.isEmpty ? [] : names(reading: table)
        let object = candidates.first { object in
            SQLName(object.table) == table || readers.contains { $0.isMentioned(in: object.sql) }
        }
        if let object { return "the \(object.type) \(object.name)" }
        let child = tables.first { child in
            child.facts.foreignKeys.contains { key in
                key.parent == table && key.columns.contains { $0.last == .some(column) }
            }
        }
        return child.map { "a foreign key of \($0.name)" }
    }

    /// Returns the names of a table and of the views that read it, directly or through other views: a view that selects
    /// all columns with `*` does not mention their names.
    private func names(reading table: SQLName) -> [SQLName] {
        var names = [table]
        var views = objects.filter { $0.type == "view" }
        var position = 0
        while position < names.count {
            let isReader = { (view: DatabaseState.Object) in names[position].isMentioned(in: view.sql) }
            let readers = views.filter(isReader)
            views.removeAll(where: isReader)
            names += readers.map { SQLName($0.name) }
            position += 1
        }
        return names
    }
}
