package import CipherCatalog
internal import CipherErrors
package import CipherSQLText
package import CipherSQLite

/// A table as SQLite interprets it, together with its SQL text.
package struct TableShape: Sendable, Equatable {
    /// The table's name.
    package var name: String
    /// The CREATE statement, as `sqlite_master` stores it.
    package var sql: String
    /// The columns, including generated ones.
    package let columns: [ColumnState]
    /// The index of each column in `columns`, for fast access: a table may have two thousand.
    private let places: [SQLName: Int]
    package let text: TableText
    package let facts: Facts

    /// The properties that distinguish tables beyond the columns themselves, in no particular order.
    package struct Facts: Sendable, Equatable {
        /// The column collations, and the expressions of generated columns.
        var collations: [SQLName: [SQLWord]] = [:]
        var generated: [SQLName: [SQLWord]] = [:]
        var checks: Set<[SQLWord]> = []
        var conflicts: Set<[SQLWord]> = []
        var deferrals: Set<[SQLWord]> = []
        package var foreignKeys: Set<ForeignKey> = []
        package var keys: Set<Key> = []
        var isStrict = false
        var isWithoutRowID = false
        var isAutoincrement = false
    }

    /// A foreign key, by names.
    package struct ForeignKey: Sendable, Hashable {
        package var parent: SQLName
        /// The pairs of child column and parent column; the parent column is `nil` if the key references the parent's
        /// primary key.
        package var columns: [[SQLName?]] = []
        var rules: [String]

        /// The columns of the table itself.
        var children: [SQLName] { columns.compactMap { $0.first ?? nil } }
    }

    /// The columns of UNIQUE, PRIMARY KEY or a unique index, in order.
    package struct Key: Sendable, Hashable {
        package struct Part: Sendable, Hashable {
            package var column: SQLName
            var isDescending: Bool
            var collation: SQLName
        }

        var origin: IndexState.Origin
        package var parts: [Part]
        /// Whether the key applies only to some rows.
        var isPartial = false
    }

    /// Reads a table of a database.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if the table's text cannot be parsed.
    package init(_ name: String, in connection: Connection) throws {
        let sql = try connection.value(
            String.self,
            "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = \(name) COLLATE NOCASE")
        try self.init(name, sql, ColumnState.read(table: name, from: connection), in: connection)
    }

    /// Creates the shape of an ordinary table that was already read, because SQLite searches the whole schema to find
    /// one table's text.
    package init(_ table: TableState, in connection: Connection) throws {
        try self.init(table.name, table.sql, table.columns, in: connection)
    }

    private init(_ name: String, _ found: String?, _ columns: [ColumnState], in connection: Connection) throws {
        guard let sql = found, let text = TableText(sql) else {
            throw StoreError(
                .migration, path: connection.path, "the definition of \(name) cannot be read",
                advice: "check the file for damage", changed: .nothing)
        }
        // A column that the text seemed to lack could be dropped with its values.
        guard text.columns.map({ SQLName($0.column ?? "") }) == columns.map({ SQLName($0.name) }) else {
            throw StoreError(
                .migration, path: connection.path,
                "the columns of \(name) cannot be determined from its CREATE TABLE statement",
                advice: "this is a bug: please report it with this message and the statement", changed: .nothing)
        }
        self.name = name
        self.sql = sql
        self.text = text
        self.columns = columns
        places = Dictionary(columns.enumerated().map { (SQLName($1.name), $0) }) { first, _ in first }
        facts = try Facts(of: text, sql, name, connection)
    }

    package func column(_ name: SQLName) -> ColumnState? { places[name].map { columns[$0] } }

    /// The column that is an alias of the rowid.
    package var rowIDColumn: ColumnState? {
        guard !facts.isWithoutRowID else { return nil }
        let key = columns.primaryKey
        guard let column = key.first, key.count == 1, SQLName(column.type) == SQLName("INTEGER") else { return nil }
        // `INTEGER PRIMARY KEY DESC` is an ordinary column with an index.
        return facts.keys.contains { $0.origin == .primaryKey } ? nil : column
    }

    /// Returns whether a column is an alias of the rowid.
    func isRowID(_ column: ColumnState) -> Bool { rowIDColumn.map { SQLName($0.name) } == SQLName(column.name) }

    /// A name of the rowid that no column uses; `nil` if there is no rowid or every name is used.
    var rowIDAlias: String? {
        facts.isWithoutRowID ? nil : columns.rowIDAlias
    }

    /// Returns the statements that give the table's sequence to the table that replaces it, if the sequence is larger
    /// than the other table's own; only a database that has an AUTOINCREMENT table can run them.
    ///
    /// A key of an AUTOINCREMENT table may never be reused, not even that of a deleted row.
    func passingSequence(to replacement: String) -> [String] {
        let (old, new) = (SQL.quoted(text: name), SQL.quoted(text: replacement))
        return [
            "DELETE FROM sqlite_sequence WHERE name IN (\(old), \(new)) AND rowid <> (SELECT rowid FROM sqlite_sequence "
                + "WHERE name IN (\(old), \(new)) ORDER BY seq DESC LIMIT 1)",
            "UPDATE sqlite_sequence SET name = \(new) WHERE name = \(old)",
        ]
    }

    // MARK: Comparing

    /// Returns whether a column has the same definition in both tables.
    func defines(_ column: SQLName, like other: TableShape) -> Bool {
        guard let mine = self.column(column), let theirs = other.column(column) else { return false }
        return mine.isDefined(like: theirs) && facts.collations[column] == other.facts.collations[column]
            && facts.generated[column] == other.facts.generated[column]
    }

    /// Returns a column's definition as SQL, including the parts that only the text contains.
    func definition(of column: ColumnState) -> String {
        let name = SQLName(column.name)
        // The text is for messages; a schema that is not valid UTF-8 was already refused.
        func text(_ words: [SQLWord]) -> String {
            words.map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: " ")
        }
        return column.definition + (facts.collations[name].map { " COLLATE \(text($0).uppercased())" } ?? "")
            + (facts.generated[name].map { " AS (\(text($0)))" } ?? "")
    }

    /// Returns whether both tables are the same to SQLite, except for the order of columns and the name.
    package func isSame(as other: TableShape) -> Bool {
        columns.count == other.columns.count && facts == other.facts
            && columns.allSatisfy { defines(SQLName($0.name), like: other) }
    }
}

extension TableShape.Facts {
    fileprivate init(of text: TableText, _ sql: String, _ name: String, _ connection: Connection) throws {
        isStrict = text.hasOption("strict")
        isWithoutRowID = text.hasOption("without", "rowid")
        for item in text.items { add(item) }
        // SQLite is only queried for properties that the text can contain, because a schema may have tens of thousands
        // of tables.
        if sql.isLike("%references%") { try readForeignKeys(name, connection) }
        if sql.isLike("%primary%") || sql.isLike("%unique%") { try readKeys(name, connection) }
    }

    /// Adds facts from the text that SQLite's pragmas do not report.
    mutating func add(_ item: TableText.Item) {
        let all = SQLTokens(item.text)
        let words = all.tokens.map(\.normalized)
        let column = item.column.map(SQLName.init)
        for (index, token) in all.tokens.enumerated() where token.kind == .word {
            let rest = words[(index + 1)...]
            switch words[index] {
            case "autoincrement": isAutoincrement = true
            case "check" where rest.first == "(": checks.insert(group(all, index + 1))
            case "as" where rest.first == "(":
                guard let column, all.depth(at: index) == 0 else { break }
                generated[column] = group(all, index + 1)
            case "collate":
                guard let column, all.depth(at: index) == 0, index + 1 < all.tokens.count else { break }
                let name = SQLWord(bytes: SQLName(all.tokens[index + 1].name).folded)
                if name != "binary" { collations[column] = [name] }
            case "conflict" where index > 1 && words[index - 1] == "on":
                guard let action = rest.first, action != "abort" else { break }
                let subject = column.map { [SQLWord(bytes: $0.folded), words[index - 2]] } ?? words[..<(index - 1)]
                conflicts.insert(subject + [action])
            case "deferrable"
            where index > 0 && words[index - 1] != "not" && rest.prefix(2) == ["initially", "deferred"]:
                deferrals.insert(column.map { [SQLWord(bytes: $0.folded)] } ?? words.prefix { $0 != "references" })
            default: break
            }
        }
    }

    private func group(_ all: SQLTokens, _ open: Int) -> [SQLWord] {
        guard let close = all.closing(open) else { return [] }
        return all.tokens[(open + 1)..<close].map(\.normalized)
    }

    private mutating func readForeignKeys(_ table: String, _ connection: Connection) throws {
        let found = try ForeignKeyState.read(table: table, from: connection).map { key in
            TableShape.ForeignKey(
                parent: SQLName(key.parent),
                columns: key.columns.map { [SQLName($0.child), $0.parent.map(SQLName.init)] }, rules: key.rules)
        }
        foreignKeys = Set(found)
    }

    private mutating func readKeys(_ table: String, _ connection: Connection) throws {
        let indexes = try IndexState.read(table: SchemaName(bytes: table.utf8), from: connection)
        for index in indexes where index.origin != .statement {
            let parts = try index.parts(connection).filter(\.isKey).map { part in
                TableShape.Key.Part(
                    column: SQLName(of: part.name ?? ""), isDescending: part.isDescending,
                    collation: SQLName(of: part.collation ?? ""))
            }
            keys.insert(TableShape.Key(origin: index.origin, parts: parts))
        }
    }
}
