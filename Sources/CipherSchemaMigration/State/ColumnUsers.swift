internal import CipherSQLText

/// The objects that need a column, and would break if it were dropped.
struct ColumnUsers {
    /// The views, triggers and virtual tables that will exist afterwards.
    let objects: [DatabaseState.Object]
    /// The tables that will exist afterwards.
    let tables: [TableShape]
    private let readers = Readers()

    init(objects: [DatabaseState.Object], tables: [TableShape]) {
        self.objects = objects
        self.tables = tables
    }

    /// Returns a description of an object that uses the column; it may name an object that does not use the column, but
    /// never misses one that does.
    ///
    /// A NATURAL join may use a column that it does not mention.
    func user(of column: String, in table: String) -> String? {
        let (column, table) = (SQLName(column), SQLName(table))
        let candidates = objects.filter { object in
            object.type != "index" && (column.isMentioned(in: object.sql) || Self.hasNaturalJoin(object.sql))
        }
        let names = candidates.isEmpty ? [] : names(reading: table)
        let object = candidates.first { object in
            SQLName(object.table) == table || names.contains { $0.isMentioned(in: object.sql) }
        }
        if let object { return "the \(object.type) \(object.name)" }
        let child = tables.first { child in
            child.facts.foreignKeys.contains { key in
                key.parent == table && key.columns.contains { $0.last == .some(column) }
            }
        }
        return child.map { "a foreign key of \($0.name)" }
    }

    private static func hasNaturalJoin(_ sql: String) -> Bool {
        guard SQLName("natural").isMentioned(in: sql) else { return false }
        let tokens = SQLTokens(sql).tokens
        let following = ["JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS"]
        return tokens.indices.dropLast().contains { index in
            tokens[index].isKeyword("NATURAL") && following.contains { tokens[index + 1].isKeyword($0) }
        }
    }

    /// Returns the names of a table and of the views that select all of its columns with `*`, also through other views.
    ///
    /// Such a view does not mention the names of the columns.
    private func names(reading table: SQLName) -> [SQLName] {
        if let known = readers.names[table] { return known }
        var names = [table]
        var views = objects.filter { $0.type == "view" && $0.sql.utf8.contains(UInt8(ascii: "*")) }
        var position = 0
        while position < names.count {
            let isReader = { (view: DatabaseState.Object) in names[position].isMentioned(in: view.sql) }
            let found = views.filter(isReader)
            views.removeAll(where: isReader)
            names += found.map { SQLName($0.name) }
            position += 1
        }
        readers.names[table] = names
        return names
    }

    /// The results of earlier searches, because the columns of a table have the same readers.
    private final class Readers {
        var names: [SQLName: [SQLName]] = [:]
    }
}
