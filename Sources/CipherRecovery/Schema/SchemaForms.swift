internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
package import CipherSQLiteFormat

/// A schema whose entries were tried one by one in a separate in-memory database, so that a damaged entry does not
/// affect the others.
package struct SchemaForms {
    package private(set) var tables: [TableForm] = []
    /// Indexes on expressions or with a condition, views and triggers, in the order in which they can be created.
    package private(set) var others: [SchemaText] = []
    package private(set) var virtualTables: [SchemaText] = []
    /// Entries that SQLite does not accept, by type and name, with the reason.
    package private(set) var rejected: [Rejected] = []

    /// Whether an entry that SQLite does not accept may belong to a table with rows.
    package var mayLackTables: Bool {
        rejected.contains { $0.entry.root != 0 && !["index", "view", "trigger"].contains($0.entry.type) }
    }

    package struct Rejected: Sendable {
        package let entry: SchemaText
        package let reason: String
    }

    /// Tables that SQLite creates itself, under names that no statement may use.
    private static let own: [String: String] = [
        "sqlite_sequence": "(name,seq)", "sqlite_stat1": "(tbl,idx,stat)",
        "sqlite_stat4": "(tbl,idx,neq,nlt,ndlt,sample)", "sqlite_stat3": "(tbl,idx,neq,nlt,ndlt,sample)",
    ]

    /// Reads a schema.
    ///
    /// - Throws: ``StoreError`` with the code `missingCollation` if a table or an index sorts by a collation that is
    ///   not registered; ``DatabaseError`` if memory is exhausted.
    package init(_ entries: [SchemaText], _ encoding: TextEncoding, extensions: SQLExtensions, path: String) throws {
        // No value that the schema states is longer than the schema.
        let size = entries.reduce(0) { $0 + Int64($1.sql?.count ?? 0) }
        let connection = try MemoryDatabase().connect(.recovering(size).with(extensions: extensions))
        defer { connection.close() }
        // The bytes of a text and of a text that is cast to a BLOB depend on the encoding.
        try connection.execute(encoding.pragma)
        var known: Set<[UInt8]> = []
        for entry in entries where entry.type == "table" {
            try add(table: entry, &known, encoding, connection, path)
        }
        for entry in entries where entry.type == "index" && entry.sql != nil {
            let last = try Self.lastEntry(connection)
            let isMade = try attempt(entry, connection, path) { try connection.execute(SQL(bytes: entry.sql ?? [])) }
            guard isMade, try !Self.indexes(after: last, connection).contains(where: { $0.folded == entry.name.folded })
            else { continue }
            rejected.append(Rejected(entry: entry, reason: "its SQL creates an index with a different name"))
        }
        try addIndexes(entries, connection)
        for type in ["view", "trigger"] {
            for entry in entries where entry.type == type {
                if try attempt(entry, connection, path, { try connection.execute(SQL(bytes: entry.sql ?? [])) }) {
                    others.append(entry)
                }
            }
        }
        for entry in entries where !["table", "index", "view", "trigger"].contains(entry.type) {
            rejected.append(Rejected(entry: entry, reason: "SQLite has no schema objects of this type"))
        }
    }

    private mutating func attempt(
        _ entry: SchemaText, _ connection: Connection, _ path: String, _ body: () throws -> Void
    ) throws -> Bool {
        guard SchemaEntryCheck.isShape(of: entry.text, entry.type, hasRoot: entry.root != 0) else {
            rejected.append(Rejected(entry: entry, reason: "its SQL creates an object of a different type"))
            return false
        }
        do {
            try connection.withinSteps(1_000_000) { try connection.standingInForAbsentFunctions(body) }
            return true
        } catch let error as DatabaseError where !error.isOutOfMemory {
            if case .collation(let name) = error.unregistered {
                throw StoreError(
                    .missingCollation, path: path,
                    "the schema uses a collation that is not registered: \(name)",
                    advice: "register the collation in the options' `collations`", changed: .nothing,
                    underlying: error)
            }
            rejected.append(Rejected(entry: entry, reason: error.message))
            return false
        }
    }

    // MARK: Tables

    private mutating func add(
        table entry: SchemaText, _ known: inout Set<[UInt8]>, _ encoding: TextEncoding, _ connection: Connection,
        _ path: String
    ) throws {
        if entry.isVirtual {
            let isSound = try attempt(entry, connection, path) {
                _ = try Statement(SQL(bytes: entry.sql ?? []), on: connection)
            }
            if isSound { virtualTables.append(entry) }
            return
        }
        guard !known.contains(entry.name.folded) else { return }
        let own = Self.own[entry.name.text]
        let name = own == nil ? entry.name : "cipherstore_own"
        var form: TableForm?
        let last = try Self.lastEntry(connection)
        let isMade = try attempt(entry, connection, path) {
            try connection.execute(
                own.map { SQL(text: "CREATE TABLE cipherstore_own\($0)") } ?? SQL(bytes: entry.sql ?? []))
            let definition = own.map { Array("CREATE TABLE \(entry.name.text)\($0)".utf8) } ?? entry.sql ?? []
            form = try Self.form(entry, definition, readAs: name, after: last, encoding, connection)
            if own != nil { try connection.execute("DROP TABLE cipherstore_own") }
        }
        guard isMade else { return }
        if let form {
            known.insert(entry.name.folded)
            tables.append(form)
        } else {
            rejected.append(Rejected(entry: entry, reason: "its SQL creates a table with a different name"))
        }
    }

    private static func lastEntry(_ connection: Connection) throws -> Int64 {
        try connection.value(Int64.self, "SELECT coalesce(max(rowid), 0) FROM sqlite_master") ?? 0
    }

    /// Returns the names of the indexes that were created after an entry.
    private static func indexes(after last: Int64, _ connection: Connection) throws -> [SchemaName] {
        try connection.values(
            SchemaName.self, "SELECT name FROM sqlite_master WHERE rowid > \(last) AND type = 'index'")
    }

    /// - Parameter last: The rowid of the last schema entry before the table was created.
    private static func form(
        _ entry: SchemaText, _ definition: [UInt8], readAs name: SchemaName, after last: Int64,
        _ encoding: TextEncoding, _ connection: Connection
    ) throws -> TableForm? {
        let columns = try ColumnState.read(table: name, from: connection)
        guard !columns.isEmpty else { return nil }
        let listed = Set(try indexes(after: last, connection))
        let primary = try IndexState.read(table: name, from: connection).first { $0.origin == .primaryKey }
        let isKeyed = primary.map { !listed.contains($0.name) } ?? false
        let parts = try isKeyed ? primary?.parts(connection) ?? [] : []
        let stored =
            isKeyed
            ? parts.map(\.position).filter { $0 >= 0 && columns[$0].generation != .virtual }
            : columns.indices.filter { columns[$0].generation != .virtual }
        let hasIntegerKey = primary == nil && !columns.primaryKey.isEmpty
        return TableForm(
            name: entry.name, definition: definition, root: entry.root, isGiven: entry.isGiven,
            isWithoutRowID: isKeyed, columns: columns, stored: stored,
            rowidValue: hasIntegerKey ? stored.firstIndex { columns[$0].primaryKeyPosition > 0 } : nil,
            key: parts.filter(\.isKey), distinct: stored.indices.filter { stored.firstIndex(of: stored[$0]) == $0 },
            defaults: try defaultValues(of: name, stored.map { ($0, columns[$0]) }, connection))
    }

    private static func defaultValues(
        of table: SchemaName, _ columns: [(position: Int, column: ColumnState)], _ connection: Connection
    ) throws -> [HeldValue] {
        // A default that is not valid UTF-8 is read as bytes.
        var bytes: [[UInt8]?] = []
        func isInvalid(_ column: ColumnState) -> Bool { column.defaultSQL?.contains("\u{FFFD}") == true }
        if columns.contains(where: { isInvalid($0.column) }) {
            let pragma: SQL = Engine.current.listsHiddenColumns ? "table_xinfo" : "table_info"
            try connection.forEachRow("PRAGMA main.\(pragma)(\(table))") {
                bytes.append(try $0.get(SchemaName?.self, at: 4)?.bytes)
            }
        }
        let isStrict = try isStrict(table, connection)
        return try columns.map { position, column in
            guard column.generation == nil, let text = column.defaultExpression else { return HeldValue(.null, .utf8) }
            let expression =
                isInvalid(column)
                ? SQL(bytes: Array("(".utf8) + (bytes[position] ?? []) + Array("\n)".utf8))
                : SQL(text: text)
            return try defaultValue(column.type, expression, isStrict: isStrict, connection)
        }
    }

    /// Returns whether a table is STRICT, in which a column of the type ANY converts nothing.
    ///
    /// Source: SQLite, "STRICT Tables", section 2.
    private static func isStrict(_ table: SchemaName, _ connection: Connection) throws -> Bool {
        guard Engine.current.sqliteVersionNumber >= 3_037_000 else { return false }
        var isStrict = false
        try connection.forEachRow("PRAGMA main.table_list(\(table))") { isStrict = try $0.get(at: 5) }
        return isStrict
    }

    /// Returns the value that SQLite reads if a record has no value for a column: the value that the column has in old
    /// rows after `ALTER TABLE … ADD COLUMN`.
    ///
    /// An INSERT would store another value: SQLite applies the column's affinity to the default as it is written, so
    /// that 1.10 in a TEXT column is '1.10' in old rows and '1.1' in new ones.
    /// Source: SQLite, "ALTER TABLE", section 5.
    private static func defaultValue(
        _ type: String, _ expression: SQL, isStrict: Bool, _ connection: Connection
    ) throws -> HeldValue {
        // A STRICT table does not accept its types in quotes; other tables accept every word as a type.
        let type = SQL(text: type.isEmpty || isStrict ? type : SQL.quoted(identifier: type))
        let end: SQL = isStrict ? "(a ANY) STRICT" : "(a)"
        try connection.execute("CREATE TEMP TABLE cipherstore_default\(end)")
        defer { _ = try? connection.execute("DROP TABLE temp.cipherstore_default") }
        try connection.execute("INSERT INTO temp.cipherstore_default VALUES (1)")
        do {
            try connection.execute("ALTER TABLE temp.cipherstore_default ADD COLUMN b \(type) DEFAULT \(expression)")
        } catch let error as DatabaseError where !error.isOutOfMemory {
            // A column with a computed default cannot have been added to a table that had rows.
            return HeldValue(.null, .utf8)
        }
        return try connection.heldValues(["b"], from: "temp.cipherstore_default").first ?? HeldValue(.null, .utf8)
    }

    // MARK: Indexes

    private mutating func addIndexes(_ entries: [SchemaText], _ connection: Connection) throws {
        let known = Dictionary(
            entries.filter { $0.type == "index" }.map { ($0.name.folded, $0) }, uniquingKeysWith: { first, _ in first })
        let listed = Set(
            try connection.values(SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'index'"))
        for number in tables.indices {
            // SQLite's own tables have no indexes.
            for index in try IndexState.read(table: tables[number].name, from: connection).reversed()
            where listed.contains(index.name) {
                let entry = known[index.name.folded]
                // The entry that created the index has another name and was rejected.
                guard entry?.sql != nil || index.origin != .statement else { continue }
                let parts = try index.parts(connection)
                let isPlain = !index.isPartial && !parts.contains(where: \.isExpression)
                tables[number].indexes.append(
                    IndexForm(
                        name: index.name, sql: entry?.sql, isUnique: index.isUnique, root: entry?.root, parts: parts,
                        isPlain: isPlain
                            && !parts.contains {
                                $0.position >= 0 && tables[number].columns[$0.position].generation == .virtual
                            }))
            }
        }
    }
}

extension Connection {
    /// Returns the values in columns of the only row of a table, with the texts as bytes in the database's encoding.
    func heldValues(_ columns: [SQL], from table: SQL) throws -> [HeldValue] {
        var types: [String] = []
        var values: [HeldValue] = []
        try forEachRow("SELECT \(columns.map { "typeof(\($0))" as SQL }.joined(by: ", ")) FROM \(table)") { row in
            types = try (0..<row.count).map { try row.get(at: $0) }
        }
        let read = zip(columns, types).map { $1 == "text" ? "CAST(\($0) AS BLOB)" as SQL : $0 }.joined(by: ", ")
        guard !types.isEmpty else { return [] }
        try forEachRow("SELECT \(read) FROM \(table)") { row in
            values = types.indices.map { HeldValue(row.value(at: $0), isText: types[$0] == "text") }
        }
        return values
    }
}
