internal import CipherSQLite

/// What a schema holds at one moment, item by item, to be compared with another moment's.
struct SchemaSnapshot {
    /// A table, a column, an index, a view or a trigger.
    struct Item: Hashable, CustomStringConvertible {
        enum Kind: String { case table, column, index, view, trigger }

        let kind: Kind
        /// The table of a column; else the item's own name.
        let owner: SQLName
        let name: SQLName

        var description: String {
            let own = String(decoding: name.folded, as: UTF8.self)
            guard kind == .column else { return "\(kind.rawValue) \(own)" }
            return "column \(String(decoding: owner.folded, as: UTF8.self)).\(own)"
        }
    }

    /// What an item is: a column's type and constraints, the text of an index, view, trigger or virtual table.
    private(set) var definitions: [Item: SQLName] = [:]
    /// The SQL that makes a table, index, view or trigger.
    private(set) var sql: [Item: String] = [:]

    init() {}

    init(of connection: Connection) throws {
        let state = try DatabaseState(of: connection, countsRows: false) { nil }
        for table in state.tables where !SQLName(table.name).hasPrefix("cipherstore_") {
            let owner = SQLName(table.name)
            let item = Item(kind: .table, owner: owner, name: owner)
            definitions[item] = SQLName("")
            sql[item] = try connection.value(
                String.self, "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = \(table.name)")
            for column in table.columns {
                definitions[Item(kind: .column, owner: owner, name: SQLName(column.name))] = SQLName(column.definition)
            }
        }
        for object in state.objects {
            guard let kind = Item.Kind(rawValue: object.type) else { continue }
            let item = Item(kind: kind, owner: SQLName(object.name), name: SQLName(object.name))
            definitions[item] = SQLName(object.sql.split(whereSeparator: \.isWhitespace).joined(separator: " "))
            sql[item] = object.sql
        }
    }

    var items: Set<Item> { Set(definitions.keys) }

    func has(_ item: Item) -> Bool { definitions[item] != nil }
}

/// What one statement did to a schema.
struct SchemaChange {
    let before: SchemaSnapshot
    let after: SchemaSnapshot

    var added: Set<SchemaSnapshot.Item> { after.items.subtracting(before.items) }
    var removed: Set<SchemaSnapshot.Item> { before.items.subtracting(after.items) }
    var changed: Set<SchemaSnapshot.Item> {
        after.items.intersection(before.items).filter { before.definitions[$0] != after.definitions[$0] }
    }
    var touched: Set<SchemaSnapshot.Item> { added.union(removed).union(changed) }
    /// Whether nothing went or became another.
    var isAdditive: Bool { removed.isEmpty && changed.isEmpty }
}
