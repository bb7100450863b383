package import CipherSQLite
package import CipherSQLiteFormat

/// A schema entry as UTF-8 text.
package struct SchemaText: Sendable {
    /// The type of the entry: `table`, `index`, `view` or `trigger`.
    package let type: String
    package let name: SchemaName
    /// The table of an index or trigger; for any other entry, its own name.
    package let table: SchemaName
    /// The root page of the b-tree: 0 for an entry without one, `nil` if it is not known.
    package let root: UInt32?
    /// The SQL as UTF-8 bytes, valid or not; `nil` for an index that SQLite created for a constraint.
    package let sql: [UInt8]?
    /// Whether the definition comes from a template.
    let isGiven: Bool

    package init(
        type: String, name: SchemaName, table: SchemaName, root: UInt32?, sql: [UInt8]?, isGiven: Bool = false
    ) {
        self.type = type
        self.name = name
        self.table = table
        self.root = root
        self.sql = sql
        self.isGiven = isGiven
    }

    /// Returns this entry as a template's definition, with the root that is known.
    func given(root: UInt32?) -> SchemaText {
        SchemaText(type: type, name: name, table: table, root: root, sql: sql, isGiven: true)
    }

    package init(_ entry: SchemaEntry, _ encoding: TextEncoding) {
        func bytes(_ text: [UInt8]) -> [UInt8] { encoding == .utf8 ? text : Array(encoding.text(text).utf8) }
        self.init(
            type: String(decoding: bytes(entry.type), as: UTF8.self), name: SchemaName(bytes: bytes(entry.name)),
            table: SchemaName(bytes: bytes(entry.tableName)), root: entry.rootPage, sql: entry.sql.map(bytes))
    }

    /// A key that is different for every entry of a schema.
    var key: [UInt8] { Array(type.utf8) + [0] + name.folded }
    /// The definition as text, for finding keywords.
    ///
    /// Only `sql` is run, byte for byte.
    var text: String { String(decoding: sql ?? [], as: UTF8.self) }
    /// Whether the entry is a virtual table.
    var isVirtual: Bool { type == "table" && root == 0 }
}
