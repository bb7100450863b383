internal import CipherCatalog
package import CipherSQLText
package import CipherSQLite

/// A snapshot of a schema, item by item, for comparison with another snapshot.
package struct SchemaSnapshot {
    /// A table, a column, an index, a view or a trigger.
    package struct Item: Hashable, CustomStringConvertible {
        enum Kind: String { case table, column, index, view, trigger }

        let kind: Kind
        /// The table of a column; otherwise the item's own name.
        let owner: SQLName
        let name: SQLName

        package var description: String {
            let own = name.text
            guard kind == .column else { return "\(kind.rawValue) \(own)" }
            return "column \(owner.text).\(own)"
        }
    }

    /// The definition of each item, without its formatting: a column's type and constraints, or the SQL of an index,
    /// view, trigger or virtual table.
    package private(set) var definitions: [Item: [SQLWord]] = [:]
    /// The SQL that creates each table, index, view or trigger.
    private(set) var sql: [Item: String] = [:]

    /// The columns of each table, which are reused as long as its SQL stays the same.
    private var columns: [Item: [Item: [SQLWord]]] = [:]

    init() {}

    /// Reads a schema.
    ///
    /// - Parameter previous: An earlier snapshot; only the tables whose SQL has changed since are read again.
    package init(of connection: Connection, after previous: SchemaSnapshot = SchemaSnapshot()) throws {
        var rows: [(type: String, name: String, sql: String, isVirtual: Bool)] = []
        try connection.forEachRow(
            "SELECT type, name, sql, coalesce(rootpage, 0) = 0 FROM main.sqlite_master WHERE sql IS NOT NULL"
        ) { rows.append((try $0.get(at: 0), try $0.get(at: 1), try $0.get(at: 2), try $0.get(at: 3))) }
        for (type, text, sql, isVirtual) in rows {
            let name = SQLName(text)
            guard let kind = Item.Kind(rawValue: type), !name.isOfSQLite, !name.isOfCipherStore
            else { continue }
            let item = Item(kind: kind, owner: name, name: name)
            self.sql[item] = sql
            let isSame = previous.sql[item].map { $0.utf8.elementsEqual(sql.utf8) } ?? false
            guard kind == .table, !isVirtual else {
                definitions[item] = isSame ? previous.definitions[item] : SQLTokens.normalized(sql)
                continue
            }
            definitions[item] = []
            let own = try isSame ? previous.columns[item] : Self.readColumns(of: text, connection)
            columns[item] = own
            definitions.merge(own ?? [:]) { $1 }
        }
    }

    private static func readColumns(of table: String, _ connection: Connection) throws -> [Item: [SQLWord]] {
        var columns: [Item: [SQLWord]] = [:]
        for column in try ColumnState.read(table: table, from: connection) {
            columns[Item(kind: .column, owner: SQLName(table), name: SQLName(column.name))] =
                SQLTokens.normalized(column.definition)
        }
        return columns
    }

    /// Returns the definition of an item, and those of a table's columns; empty if there is no such item.
    func parts(of item: Item) -> [Item: [SQLWord]] {
        var parts = columns[item] ?? [:]
        parts[item] = definitions[item]
        return parts
    }

    var items: Set<Item> { Set(definitions.keys) }

    func has(_ item: Item) -> Bool { definitions[item] != nil }
}

/// The changes that one statement made to a schema.
struct SchemaChange {
    let before: SchemaSnapshot
    let after: SchemaSnapshot
    private(set) var added: Set<SchemaSnapshot.Item> = []
    private(set) var removed: Set<SchemaSnapshot.Item> = []
    private(set) var changed: Set<SchemaSnapshot.Item> = []

    /// Creates the change of a statement that did not change the schema.
    init(none schema: SchemaSnapshot) {
        before = schema
        after = schema
    }

    init(before: SchemaSnapshot, after: SchemaSnapshot) {
        self.before = before
        self.after = after
        // A table whose SQL is unchanged has the same columns.
        for (item, sql) in after.sql where before.sql[item]?.utf8.elementsEqual(sql.utf8) != true {
            let (old, new) = (before.parts(of: item), after.parts(of: item))
            added.formUnion(new.keys.filter { old[$0] == nil })
            removed.formUnion(old.keys.filter { new[$0] == nil })
            changed.formUnion(new.keys.filter { key in old[key].map { $0 != new[key] } ?? false })
        }
        for item in before.sql.keys where after.sql[item] == nil { removed.formUnion(before.parts(of: item).keys) }
    }

    var touched: Set<SchemaSnapshot.Item> { added.union(removed).union(changed) }
    /// Whether nothing was removed or changed.
    var isAdditive: Bool { removed.isEmpty && changed.isEmpty }
}
