package import CipherSQLite
internal import CipherSQLiteFormat

/// An entry of a schema as text in UTF-8.
package struct SchemaText: Sendable {
    /// `table`, `index`, `view` or `trigger`.
    package let type: String
    package let name: SchemaName
    /// The table of an index or trigger, else the name again.
    package let table: SchemaName
    /// The root of the b-tree: 0 of what has none, `nil` if it is not known.
    package let root: UInt32?
    /// Bytes of UTF-8, valid or not; `nil` of an index that SQLite made for a constraint.
    package let sql: [UInt8]?
    /// Whether a template gives the definition.
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

    /// The definition of a template, with the root that is known.
    func given(root: UInt32?) -> SchemaText {
        SchemaText(type: type, name: name, table: table, root: root, sql: sql, isGiven: true)
    }

    init(_ entry: SchemaEntry, _ encoding: TextEncoding) {
        func bytes(_ text: [UInt8]) -> [UInt8] { encoding == .utf8 ? text : Array(encoding.text(text).utf8) }
        self.init(
            type: String(decoding: bytes(entry.type), as: UTF8.self), name: SchemaName(bytes: bytes(entry.name)),
            table: SchemaName(bytes: bytes(entry.tableName)), root: entry.rootPage, sql: entry.sql.map(bytes))
    }

    /// What no two entries of a schema have in common.
    var key: [UInt8] { Array(type.utf8) + [0] + name.folded }
    /// For looking at keywords; what is run is `sql`, byte by byte.
    var text: String { String(decoding: sql ?? [], as: UTF8.self) }
    /// Whether the table is one that its module keeps.
    var isVirtual: Bool { type == "table" && root == 0 }
}
