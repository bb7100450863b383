internal import CipherSQLText
package import CipherSQLite

/// A column as it is in the database.
package struct ColumnState: Sendable, Equatable {
    package let name: String
    /// The exact bytes of the column's name.
    package let schemaName: SchemaName
    /// The declared type, as written.
    package var type: String
    package var isNotNull: Bool
    /// The default as SQL text.
    package var defaultSQL: String?
    /// The position in the primary key, from 1; 0 if the column is not part of it.
    package var primaryKeyPosition: Int
    package var generation: Generation?
    /// Whether the column is a column of a virtual table that `*` omits.
    package var isHidden: Bool

    /// Whether the value of a generated column is computed when it is read, or stored.
    package enum Generation: Int, Sendable { case virtual = 2, stored = 3 }

    /// Returns whether both columns have the same properties, as far as SQLite reports them without the schema's text:
    /// type, NOT NULL, default, primary key.
    package func isDefined(like other: ColumnState) -> Bool {
        SQLTokens.normalized(type) == SQLTokens.normalized(other.type) && isNotNull == other.isNotNull
            && defaultSQL.map(SQLTokens.normalized) == other.defaultSQL.map(SQLTokens.normalized)
            && primaryKeyPosition == other.primaryKeyPosition && generation == other.generation
    }

    /// The definition as SQL.
    package var definition: String {
        var words = type.isEmpty ? [] : [type]
        if primaryKeyPosition > 0 { words.append("PRIMARY KEY") }
        if isNotNull { words.append("NOT NULL") }
        if let defaultSQL { words.append("DEFAULT \(defaultSQL)") }
        if let generation { words.append("GENERATED \(generation == .stored ? "STORED" : "VIRTUAL")") }
        return words.isEmpty ? "no type" : words.joined(separator: " ")
    }

    /// Returns the columns of a table, including generated ones; empty if there is no such table.
    ///
    /// Source: SQLite, "PRAGMA table_xinfo", for the meaning of its last column.
    package static func read(
        table: SchemaName, in schema: SchemaName = "main", from connection: Connection
    ) throws -> [ColumnState] {
        let hasHidden = Engine.current.listsHiddenColumns
        let pragma: SQL = hasHidden ? "PRAGMA \(schema).table_xinfo" : "PRAGMA \(schema).table_info"
        var columns: [ColumnState] = []
        try connection.forEachRow("\(pragma)(\(table))") { row in
            let hidden = hasHidden ? try row.get(Int.self, at: 6) : 0
            columns.append(
                ColumnState(
                    name: try row.get(at: 1), schemaName: try row.get(at: 1),
                    type: try row.get(String?.self, at: 2) ?? "", isNotNull: try row.get(at: 3),
                    defaultSQL: try row.get(at: 4), primaryKeyPosition: try row.get(at: 5),
                    generation: Generation(rawValue: hidden), isHidden: hidden == 1))
        }
        return columns
    }

    /// Returns the columns of a table whose name is valid UTF-8.
    package static func read(
        table: String, in schema: String = "main", from connection: Connection
    ) throws -> [ColumnState] {
        try read(table: SchemaName(bytes: table.utf8), in: SchemaName(bytes: schema.utf8), from: connection)
    }
}

extension [ColumnState] {
    /// The columns of the primary key, in the order of the key.
    package var primaryKey: [ColumnState] {
        filter { $0.primaryKeyPosition > 0 }.sorted { $0.primaryKeyPosition < $1.primaryKeyPosition }
    }

    /// A name of the rowid that no column uses; `nil` if columns use all of them.
    package var rowIDAlias: String? {
        let taken = Set(map { SQLName(of: $0.schemaName) })
        return ["rowid", "_rowid_", "oid"].first { !taken.contains(SQLName($0)) }
    }
}

extension ColumnState {
    /// The default as an expression; `nil` if there is no default or it is NULL.
    ///
    /// A bare word as a default is text, but in an expression it would be a column. TRUE and FALSE are words like any
    /// other before SQLite 3.23. Source: SQLite, "Release History".
    package var defaultExpression: String? {
        guard let defaultSQL else { return nil }
        let tokens = SQLTokens(defaultSQL).tokens
        guard let first = tokens.first, !(tokens.count == 1 && first.isKeyword("NULL")) else { return nil }
        let keywords =
            ["CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"]
            + (Engine.current.sqliteVersionNumber >= 3_023_000 ? ["TRUE", "FALSE"] : [])
        let isText = tokens.count == 1 && first.isName && !keywords.contains { first.isKeyword($0) }
        // The parenthesis must not become part of a comment at the end.
        let hasComment = tokens.last.map { $0.range.upperBound < defaultSQL.utf8.count } ?? false
        return isText ? SQL.quoted(text: first.content) : "(\(defaultSQL)\(hasComment ? "\n" : ""))"
    }
}
