internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSQLiteFormat

/// A database in memory in which entries of a schema are tried.
struct SchemaScratch {
    private(set) var tables: [TableForm] = []
    private(set) var others: [SchemaText] = []
    private(set) var virtualTables: [SchemaText] = []
    private(set) var rejected: [SchemaForms.Rejected] = []

    private let entries: [SchemaText]
    private let path: String
    private let connection: Connection
    /// A name that no entry has.
    private let spareName: SchemaName

    /// Tables that SQLite creates itself, under names that no statement may use.
    private static let own: [String: String] = [
        "sqlite_sequence": "(name,seq)", "sqlite_stat1": "(tbl,idx,stat)",
        "sqlite_stat2": "(tbl,idx,sampleno,sample)",
        "sqlite_stat4": "(tbl,idx,neq,nlt,ndlt,sample)", "sqlite_stat3": "(tbl,idx,neq,nlt,ndlt,sample)",
    ]

    /// - Parameter entries: Tables and views with their indexes and triggers.
    init(_ entries: [SchemaText], _ encoding: TextEncoding, _ extensions: SQLExtensions, _ path: String) throws {
        self.entries = entries
        self.path = path
        var spare = Array("cipherstore_own".utf8)
        while entries.contains(where: { $0.name.folded == spare }) { spare.append(UInt8(ascii: "_")) }
        spareName = SchemaName(bytes: spare)
        // No value that the schema states is longer than the schema, which is in UTF-8 here.
        let size = entries.reduce(0) { $0 + Int64($1.sql?.count ?? 0) } * (encoding == .utf8 ? 1 : 2)
        connection = try MemoryDatabase().connect(.recovering(size).with(extensions: extensions))
        // The bytes of a text and of a text that is cast to a BLOB depend on the encoding.
        try connection.execute(encoding.pragma)
    }

    func close() { connection.close() }

    /// Tries the entries.
    ///
    /// - Parameter names: The names that entries have taken elsewhere.
    mutating func run(_ names: inout SchemaNames) throws {
        let connection = connection
        for entry in entries where entry.type == "table" { try add(table: entry, &names) }
        for type in ["index", "view", "trigger"] {
            for entry in entries where entry.type == type && (type != "index" || entry.sql != nil) {
                let last = try lastEntry()
                guard try attempt(entry, names, making: { try connection.execute(SQL(bytes: entry.sql ?? [])) }) else {
                    continue
                }
                let made = try connection.values(
                    SchemaName.self, SQL(text: "SELECT name FROM sqlite_master WHERE rowid > \(last)"))
                guard made.contains(where: { $0.folded == entry.name.folded }) else {
                    reject(entry, "its SQL creates an object with a different name")
                    continue
                }
                names.take(entry)
                if type != "index" { others.append(entry) }
            }
        }
        try addIndexes()
    }

    private mutating func reject(_ entry: SchemaText, _ reason: String) {
        rejected.append(SchemaForms.Rejected(entry: entry, reason: reason))
    }

    private mutating func attempt(_ entry: SchemaText, _ names: SchemaNames, making make: () throws -> Void) throws
        -> Bool
    {
        guard SchemaEntryCheck.isShape(of: entry.text, entry.type, hasRoot: entry.root != 0) else {
            reject(entry, "its SQL creates an object of a different type")
            return false
        }
        guard !names.has(entry) else {
            reject(entry, "another entry has its name")
            return false
        }
        do {
            try connection.withinSteps(1_000_000) { try connection.standingInForAbsentFunctions(make) }
            return true
        } catch let error as DatabaseError where !error.isOutOfMemory {
            if case .collation(let name) = error.unregistered {
                throw StoreError(
                    .missingCollation, path: path,
                    "the schema uses a collation that is not registered: \(name)",
                    advice: "register the collation in the options' `collations`", changed: .nothing,
                    underlying: error)
            }
            if try !error.isInterrupted && load(entry) { return true }
            reject(entry, error.message)
            return false
        }
    }

    /// Makes SQLite read an entry that it does not create, and returns whether it does.
    ///
    /// SQLite reads from old files what earlier versions created. Source: SQLite, "The Schema Table".
    private func load(_ entry: SchemaText) throws -> Bool {
        guard !entry.name.folded.starts(with: "sqlite_".utf8), !Self.isFilledByQuery(entry) else { return false }
        let last = try lastEntry()
        let automatic = entries.filter { $0.type == "index" && $0.sql == nil && $0.table.folded == entry.name.folded }
        let loaded = [entry] + (entry.type == "table" ? automatic : [])
        do {
            // Each b-tree needs its own root.
            for number in loaded.indices {
                try connection.execute(SQL(text: "CREATE TABLE cipherstore_root_\(number)(a)"))
            }
            try connection.writingSchema {
                for (number, entry) in loaded.enumerated() {
                    let root = entry.root == 0 ? "0" : "rootpage"
                    try connection.run(
                        SQL(
                            text: """
                                UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ?, rootpage = \(root)
                                WHERE rowid > \(last) AND name = 'cipherstore_root_\(number)'
                                """),
                        [Array(entry.type.utf8), entry.name.bytes, entry.table.bytes, entry.sql])
                }
            }
            try connection.forgetSchemas()
            _ = try connection.value(Int.self, "SELECT count(*) FROM sqlite_master")
            return true
        } catch let error as DatabaseError where !error.isOutOfMemory {
            try connection.writingSchema {
                try connection.execute(SQL(text: "DELETE FROM sqlite_master WHERE rowid > \(last)"))
            }
            try connection.forgetSchemas()
            return false
        }
    }

    /// Returns whether a definition is a CREATE TABLE … AS SELECT, with which old engines crash as they read the schema.
    private static func isFilledByQuery(_ entry: SchemaText) -> Bool {
        let tokens = SQLTokens(entry.text).tokens
        guard entry.type == "table", let query = tokens.firstIndex(where: { $0.isKeyword("as") }) else { return false }
        return query < tokens.firstIndex { $0.isKeyword("(") } ?? .max
    }

    private func lastEntry() throws -> Int64 {
        try connection.value(Int64.self, "SELECT coalesce(max(rowid), 0) FROM sqlite_master") ?? 0
    }

    /// Returns the names of the indexes that were created after an entry.
    private func indexNames(after last: Int64) throws -> [SchemaName] {
        try connection.values(
            SchemaName.self, "SELECT name FROM sqlite_master WHERE rowid > \(last) AND type = 'index'")
    }

    // MARK: Tables

    private mutating func add(table entry: SchemaText, _ names: inout SchemaNames) throws {
        let (connection, spareName) = (connection, spareName)
        if entry.isVirtual {
            let isSound = try attempt(entry, names) {
                _ = try Statement(SQL(bytes: entry.sql ?? []), on: connection)
            }
            guard isSound else { return }
            names.take(entry)
            virtualTables.append(entry)
            return
        }
        let own = Self.own[entry.name.text]
        let last = try lastEntry()
        let isMade = try attempt(entry, names) {
            guard let own else { return try connection.createTable(entry.sql ?? []) }
            try connection.execute("CREATE TABLE \(spareName)\(SQL(text: own))")
        }
        guard isMade else { return }
        let definition = own.map { Array("CREATE TABLE \(entry.name.text)\($0)".utf8) } ?? entry.sql ?? []
        let form: TableForm?
        do {
            form = try connection.withinSteps(1_000_000) {
                try connection.standingInForAbsentFunctions {
                    try self.form(entry, definition, readAs: own == nil ? entry.name : spareName, after: last)
                }
            }
        } catch let error as DatabaseError where !error.isOutOfMemory {
            return reject(entry, error.message)
        }
        if own != nil { try connection.execute("DROP TABLE \(spareName)") }
        guard let form else { return reject(entry, "its SQL creates a table with a different name") }
        names.take(entry)
        tables.append(form)
    }

    /// - Parameter last: The rowid of the last schema entry before the table was created.
    private func form(
        _ entry: SchemaText, _ definition: [UInt8], readAs name: SchemaName, after last: Int64
    ) throws -> TableForm? {
        let columns = try ColumnState.read(table: name, from: connection)
        guard !columns.isEmpty else { return nil }
        let listed = Set(try indexNames(after: last))
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
            defaults: try defaultValues(of: name, stored.map { ($0, columns[$0]) }))
    }

    private func defaultValues(
        of table: SchemaName, _ columns: [(position: Int, column: ColumnState)]
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
        let isStrict = try isStrict(table)
        return try columns.map { position, column in
            guard column.generation == nil, let text = column.defaultExpression else { return HeldValue(.null, .utf8) }
            let expression =
                isInvalid(column)
                ? SQL(bytes: Array("(".utf8) + (bytes[position] ?? []) + Array("\n)".utf8))
                : SQL(text: text)
            return try defaultValue(column.type, expression, isStrict: isStrict)
        }
    }

    /// Returns whether a table is STRICT, in which a column of the type ANY converts nothing.
    ///
    /// Source: SQLite, "STRICT Tables", section 2.
    private func isStrict(_ table: SchemaName) throws -> Bool {
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
    private func defaultValue(_ type: String, _ expression: SQL, isStrict: Bool) throws -> HeldValue {
        // No table with rows gets a STRICT column whose default has another type, but old engines made such columns. ANY
        // converts nothing in a STRICT table, and BLOB nothing in any other; tables accept every word as a type.
        let type = isStrict && type.lowercased() == "any" ? "BLOB" : type
        let quoted = SQL(text: type.isEmpty ? type : SQL.quoted(identifier: type))
        try connection.execute("CREATE TEMP TABLE cipherstore_default(a)")
        defer { _ = try? connection.execute("DROP TABLE temp.cipherstore_default") }
        try connection.execute("INSERT INTO temp.cipherstore_default VALUES (1)")
        do {
            try connection.execute("ALTER TABLE temp.cipherstore_default ADD COLUMN b \(quoted) DEFAULT \(expression)")
        } catch let error as DatabaseError where !error.isOutOfMemory {
            // A column with a computed default cannot have been added to a table that had rows.
            return HeldValue(.null, .utf8)
        }
        return try connection.heldValues(["b"], from: "temp.cipherstore_default").first ?? HeldValue(.null, .utf8)
    }

    // MARK: Indexes

    private mutating func addIndexes() throws {
        let known = Dictionary(
            entries.filter { $0.type == "index" }.map { ($0.name.folded, $0) }, uniquingKeysWith: { first, _ in first })
        let listed = Set(try indexNames(after: 0))
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
    /// Creates a table, unless SQLite would store another text, and perhaps not read this one, such as that of a table
    /// that is filled by a query.
    fileprivate func createTable(_ sql: [UInt8]) throws {
        try execute("SAVEPOINT cipherstore_table")
        do {
            try execute(SQL(bytes: sql))
            let stored = try value(
                SchemaName.self,
                """
                SELECT sql FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY rowid DESC
                """)
            guard stored?.bytes == sql else {
                throw DatabaseError(
                    extendedCode: DatabaseError.generic, message: "SQLite does not read its SQL as a definition")
            }
            try execute("RELEASE cipherstore_table")
        } catch {
            _ = try? execute("ROLLBACK TO cipherstore_table")
            _ = try? execute("RELEASE cipherstore_table")
            throw error
        }
    }

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

    /// Runs a statement with texts that are bound as UTF-8 bytes.
    func run(_ sql: SQL, _ texts: [[UInt8]?]) throws {
        let statement = try Statement(sql, on: self)
        let held = texts.map { text in text.map(HeldBytes.init) }
        for (index, text) in held.enumerated() {
            if let text {
                try statement.bind(text: text.bytes, .utf8, at: Int32(index + 1))
            } else {
                try statement.bindNull(at: Int32(index + 1))
            }
        }
        try statement.step()
        withExtendedLifetime(held) {}
    }
}
