internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
package import CipherSQLiteFormat

/// A new database that is filled with the rows of a damaged one.
///
/// Each table is filled under a plain definition, which refuses no row and converts no value, and gets its own at the end;
/// each index is filled from the rows. The connection's file is empty, and of no use where anything fails.
/// Source: SQLite, "The Schema Table" and "PRAGMA writable_schema".
package final class RecoveredDatabase {
    private let connection: Connection
    let forms: SchemaForms
    let encoding: TextEncoding
    private var statements: [Statement]
    private(set) var apart: ApartTable
    /// By table: how many rows it got.
    package private(set) var counts: [Int]
    /// By table and key: the rows that are apart for another row has their key.
    private(set) var displaced: [[UInt64: Set<UInt64>]]
    /// Reads the row that has a key, by table.
    private var lookups: [Int: Statement] = [:]
    /// By table, and of the database as a whole: what is to be told.
    package private(set) var notes: [Int: [String]] = [:]
    package private(set) var generalNotes: [String] = []
    /// The tables whose rows a full-text table has computed anew.
    package private(set) var rebuilt: Set<Int> = []
    /// Whether an index holds the same key more than once.
    package private(set) var hasDuplicates = false

    /// How names begin while tables are filled.
    private let prefix: String

    /// Begins a transaction, and makes the tables.
    ///
    /// - Parameters:
    ///   - header: That of the damaged database, where it is known.
    ///   - apart: The name of the table of the rows that are of no table, unless the schema has that.
    package init(
        _ connection: Connection, _ forms: SchemaForms, _ encoding: TextEncoding, header: FileHeader?,
        apart: String = "lost_and_found"
    ) throws {
        self.connection = connection
        self.forms = forms
        self.encoding = encoding
        self.apart = ApartTable(named: apart, forms, encoding, connection)
        counts = [Int](repeating: 0, count: forms.tables.count)
        displaced = [[UInt64: Set<UInt64>]](repeating: [:], count: forms.tables.count)
        var prefix = "cipherstore_recovered_"
        while forms.names.contains(where: { $0.starts(with: prefix.utf8) }) { prefix += "_" }
        self.prefix = prefix
        statements = []
        try Self.setLayout(connection, encoding, header)
        try connection.execute("BEGIN")
        for number in forms.tables.indices {
            try connection.execute(SQL(text: definition(number)))
            statements.append(try insertion(number))
        }
        if let header {
            try connection.execute(SQL(text: "PRAGMA user_version = \(header.userVersion)"))
            try connection.execute(SQL(text: "PRAGMA application_id = \(header.applicationID)"))
        }
    }

    /// What a file takes on with its first page, and what suits a file that is scrap until it is proven.
    private static func setLayout(_ connection: Connection, _ encoding: TextEncoding, _ header: FileHeader?) throws {
        let name =
            switch encoding {
            case .utf8: "UTF-8"
            case .utf16LittleEndian: "UTF-16le"
            case .utf16BigEndian: "UTF-16be"
            }
        let autoVacuum = header?.hasPointerMap == true ? (header?.isIncrementalVacuum == true ? 2 : 1) : 0
        for pragma in [
            "encoding = '\(name)'", "auto_vacuum = \(autoVacuum)", "synchronous = OFF", "locking_mode = EXCLUSIVE",
            "cache_size = -8000", "foreign_keys = OFF", "recursive_triggers = OFF", "ignore_check_constraints = ON",
            // A page that becomes free is written, so that none is a hole, which SQLCipher takes for a forged one.
            "secure_delete = ON",
        ] {
            try connection.execute(SQL(text: "PRAGMA \(pragma)"))
        }
    }

    // MARK: Tables

    private func tableName(_ number: Int) -> String { "\(prefix)\(number)" }

    private func definition(_ number: Int) -> String {
        let table = forms.tables[number]
        var parts = table.stored.indices.map { "c\($0)" + ($0 == table.rowidValue ? " INTEGER PRIMARY KEY" : "") }
        guard table.isWithoutRowID else { return "CREATE TABLE \(tableName(number))(\(parts.joined(separator: ", ")))" }
        parts.append("PRIMARY KEY(\(Self.columns(table.key, table)))")
        return "CREATE TABLE \(tableName(number))(\(parts.joined(separator: ", "))) WITHOUT ROWID"
    }

    /// The columns of a key as they are named while tables are filled.
    private static func columns(_ parts: [IndexState.Part], _ table: TableForm) -> String {
        parts.filter(\.isKey).map { part in
            let place = table.stored.firstIndex(of: part.position) ?? table.rowidValue ?? 0
            return "c\(place)" + (part.collation.map { " COLLATE \(SQL.quoted(identifier: $0.text))" } ?? "")
                + (part.isDescending ? " DESC" : "")
        }.joined(separator: ", ")
    }

    private func insertion(_ number: Int) throws -> Statement {
        let table = forms.tables[number]
        let hasOwnRowID = !table.isWithoutRowID && table.rowidValue == nil
        let columns = (hasOwnRowID ? ["rowid"] : []) + table.stored.indices.map { "c\($0)" }
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        return try Statement(
            SQL(
                text:
                    "INSERT OR IGNORE INTO \(tableName(number))(\(columns.joined(separator: ", "))) VALUES (\(marks))"
            ), on: connection)
    }

    // MARK: Rows

    /// Adds a row; apart, where its table has another one of the same rowid or key.
    package func add(_ row: ReadRow) throws {
        switch row.destination {
        case .table(let number):
            guard try !add(row, to: number), try !holds(row, number) else { return }
            let key = forms.tables[number].keyPrint(row.rowid, row.values)
            displaced[number][key, default: []].insert(row.values.fingerprint(isExact: true))
            try addApart(row, .orphaned, [number])
        case .apart(let reason, let tables): try addApart(row, reason, tables)
        }
    }

    private func addApart(_ row: ReadRow, _ reason: ReadRow.Reason, _ tables: [Int]) throws {
        try apart.add(row, reason, tables)
        apartCounts[reason, default: 0] += 1
    }

    /// Whether a row is apart for another row of its table has its key.
    func isDisplaced(_ row: ReadRow, in number: Int) -> Bool {
        guard !displaced[number].isEmpty else { return false }
        return displaced[number][forms.tables[number].keyPrint(row.rowid, row.values)]?
            .contains(row.values.fingerprint(isExact: true)) == true
    }

    /// Whether the row of a table that has the key of another one is equal to it.
    private func holds(_ row: ReadRow, _ number: Int) throws -> Bool {
        let table = forms.tables[number]
        let statement = try lookups[number] ?? lookup(number)
        lookups[number] = statement
        if table.isWithoutRowID {
            for place in table.key.indices { try statement.bind(row.values[place], at: Int32(place + 1), encoding) }
        } else {
            try statement.bind(row.rowid ?? 0, at: 1)
        }
        defer { statement.rewind() }
        guard try statement.step() else { return false }
        return table.stored.indices.allSatisfy { place in
            place == table.rowidValue
                || statement.column(Int32(place), holds: table.value(place, of: row), encoding)
        }
    }

    private func lookup(_ number: Int) throws -> Statement {
        let table = forms.tables[number]
        let columns = table.stored.indices.map { "c\($0)" }.joined(separator: ", ")
        let key =
            table.isWithoutRowID
            ? table.key.enumerated().map { place, part in
                "c\(place) = ?"
                    + (part.collation.map { " COLLATE \(SQL.quoted(identifier: $0.text))" } ?? "")
            }.joined(separator: " AND ") : "rowid = ?"
        return try Statement(SQL(text: "SELECT \(columns) FROM \(tableName(number)) WHERE \(key)"), on: connection)
    }

    /// - Returns: Whether the table had no row of its rowid or key.
    private func add(_ row: ReadRow, to number: Int) throws -> Bool {
        let (table, statement) = (forms.tables[number], statements[number])
        let hasOwnRowID = !table.isWithoutRowID && table.rowidValue == nil
        if hasOwnRowID { try statement.bind(row.rowid ?? 0, at: 1) }
        for place in table.stored.indices {
            let index = Int32(place + (hasOwnRowID ? 2 : 1))
            if place == table.rowidValue {
                try statement.bind(row.rowid ?? 0, at: index)
            } else {
                try statement.bind(table.value(place, of: row), at: index, encoding)
            }
        }
        defer { statement.rewind() }
        try statement.step()
        guard connection.changes > 0 else { return false }
        counts[number] += 1
        return true
    }

    /// How many rows are apart, by the reason.
    package private(set) var apartCounts: [ReadRow.Reason: Int] = [:]
    package var apartRows: Int64 { apart.rows }
    package var apartName: SchemaName { apart.name }

    // MARK: The schema

    /// Gives the tables their own definitions, makes all else of the schema, and ends the transaction.
    package func finish() throws {
        statements = []
        lookups = [:]
        for number in forms.tables.indices { try makeIndexes(number) }
        try connection.execute("PRAGMA writable_schema = ON")
        for (number, table) in forms.tables.enumerated() {
            try rename(tableName(number), to: table.name, of: table.name, table.definition)
            for (place, index) in table.indexes.enumerated() where index.isPlain {
                try rename(indexName(number, place), to: index.name, of: table.name, index.sql)
            }
        }
        for entry in forms.virtualTables {
            try run(
                "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) VALUES ('table', ?1, ?1, 0, ?2)",
                [entry.name.bytes, entry.sql])
        }
        try connection.forgetSchemas()
        try connection.execute("PRAGMA writable_schema = OFF")
        try keepSequences()
        for (number, table) in forms.tables.enumerated() {
            for index in table.indexes where !index.isPlain { try make(index, number) }
        }
        for entry in forms.others { try make(entry) }
        for entry in forms.virtualTables { try rebuild(entry) }
        try connection.execute("COMMIT")
        // The modules write some of it when the transaction ends.
        for number in rebuilt {
            counts[number] = try connection.value(Int.self, "SELECT count(*) FROM \(forms.tables[number].name)") ?? 0
        }
    }

    private func indexName(_ number: Int, _ place: Int) -> String { "\(prefix)\(number)_\(place)" }

    private func makeIndexes(_ number: Int) throws {
        let table = forms.tables[number]
        for (place, index) in table.indexes.enumerated() where index.isPlain {
            let columns = Self.columns(index.parts, table)
            try connection.execute(
                SQL(text: "CREATE INDEX \(indexName(number, place)) ON \(tableName(number))(\(columns))"))
            guard index.isUnique else { continue }
            let keys = index.parts.filter(\.isKey).map { part in
                let place = table.stored.firstIndex(of: part.position) ?? table.rowidValue ?? 0
                return (name: "c\(place)", collation: part.collation?.text ?? "BINARY")
            }
            let isKey = keys.map { "\($0.name) IS NOT NULL" }.joined(separator: " AND ")
            let group = keys.map { "\($0.name) COLLATE \(SQL.quoted(identifier: $0.collation))" }.joined(
                separator: ", ")
            let count = try connection.value(
                Int.self,
                SQL(
                    text:
                        "SELECT count(*) FROM (SELECT 1 FROM \(tableName(number)) WHERE \(isKey) GROUP BY \(group) HAVING count(*) > 1)"
                ))
            guard let count, count > 0 else { continue }
            hasDuplicates = true
            note(
                number,
                "the index \(index.name) is unique, but \(count == 1 ? "1 key occurs" : "\(count) keys occur") more than once; all rows were kept"
            )
        }
    }

    private func note(_ number: Int, _ text: String) { notes[number, default: []].append(text) }

    private func rename(_ name: String, to own: SchemaName, of table: SchemaName, _ sql: [UInt8]?) throws {
        try run(
            "UPDATE sqlite_master SET name = ?, tbl_name = ?, sql = ? WHERE name = ?",
            [own.bytes, table.bytes, sql, Array(name.utf8)])
    }

    /// Runs a statement with texts, as bytes of UTF-8.
    private func run(_ sql: SQL, _ texts: [[UInt8]?]) throws {
        let statement = try Statement(sql, on: connection)
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

    // MARK: What is computed from the rows

    private func make(_ entry: SchemaText) throws {
        do {
            try connection.standingInForAbsentFunctions { try connection.execute(SQL(bytes: entry.sql ?? [])) }
        } catch let error as DatabaseError where !error.endsRun {
            generalNotes.append("the \(entry.type) \(entry.name) could not be created: \(error.message)")
        }
    }

    private func make(_ index: IndexForm, _ number: Int) throws {
        do {
            try connection.execute(SQL(bytes: index.sql ?? []))
        } catch let error as DatabaseError where !error.endsRun {
            if error.isConstraintViolation {
                hasDuplicates = true
                note(
                    number,
                    "the index \(index.name) is unique, but some keys occur more than once; all rows were kept, and the index was left out"
                )
            } else {
                note(number, "the index \(index.name) could not be created and was left out: \(error.message)")
            }
        }
    }

    /// Has every table with AUTOINCREMENT find its counter.
    private func keepSequences() throws {
        let counted = forms.tables.indices.filter { forms.tables[$0].countsRowIDs }
        guard !counted.isEmpty else { return }
        let sequence = forms.tables.firstIndex { $0.name == "sqlite_sequence" }
        if sequence == nil {
            try connection.execute("CREATE TABLE \(SQL(text: prefix))(a INTEGER PRIMARY KEY AUTOINCREMENT)")
            try connection.execute("DROP TABLE \(SQL(text: prefix))")
        }
        for number in counted where counts[number] > 0 {
            let name = forms.tables[number].name
            try run(
                """
                INSERT INTO sqlite_sequence(name, seq) SELECT ?1, (SELECT max(rowid) FROM \(name))
                WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)
                """, [name.bytes])
            guard connection.changes > 0 else { continue }
            sequencesMade.insert(number)
            if let sequence { counts[sequence] += 1 }
        }
    }

    /// The tables whose counter was lost and was set to the greatest rowid.
    package private(set) var sequencesMade: Set<Int> = []

    /// Computes the index of a full-text table from its content anew.
    private func rebuild(_ entry: SchemaText) throws {
        guard let text = FullTextTable(entry) else { return }
        let shadows = Dictionary(
            uniqueKeysWithValues: forms.tables.enumerated().map { ($0.element.name.folded, $0.offset) })
        func shadow(_ ending: String) -> Int? { shadows[entry.name.folded + Array("_\(ending)".utf8)] }
        guard text.hasContent, text.contentTable != nil || shadow("content") != nil else { return }
        let fresh = "\(prefix)text"
        guard let definition = text.definition(named: fresh) else {
            return generalNotes.append(
                "the full-text table \(entry.name) could not be rebuilt; its index is as it was read")
        }
        do {
            try connection.execute("SAVEPOINT cipherstore_rebuilding")
            try connection.execute(SQL(text: definition))
            let (emptied, settings) = try empty(text, entry, likeNew: fresh, shadow)
            try connection.execute("INSERT INTO \(entry.name)(\(entry.name)) VALUES ('rebuild')")
            try connection.execute("RELEASE cipherstore_rebuilding")
            rebuilt.formUnion(emptied)
            if settings > 0, let config = shadow("config") {
                counts[config] += settings
                note(config, "what it lacked was set as in a new full-text table")
            }
        } catch let error as DatabaseError where !error.endsRun {
            try connection.execute("ROLLBACK TO cipherstore_rebuilding")
            try connection.execute("RELEASE cipherstore_rebuilding")
            generalNotes.append(
                "the full-text table \(entry.name) could not be rebuilt; its index is as it was read: \(error.message)"
            )
        }
    }
}

extension RecoveredDatabase {
    /// Gives the tables that are computed what they have of an empty full-text table, for the module reads them before it
    /// computes them anew, and drops that one.
    ///
    /// - Parameter number: Tells the table with an ending by its place; `nil` where there is none.
    /// - Returns: The tables that are computed, and how many settings were lost and are those of a new table.
    private func empty(
        _ text: FullTextTable, _ entry: SchemaText, likeNew fresh: String, _ number: (String) -> Int?
    ) throws -> (tables: [Int], settings: Int) {
        func shadow(_ name: [UInt8], _ ending: String) -> SchemaName {
            SchemaName(bytes: name + Array("_\(ending)".utf8))
        }
        let made = Set(try connection.values(SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table'"))
        var (tables, settings): ([Int], Int) = ([], 0)
        for ending in text.computed + ["config"] {
            let (new, own) = (shadow(Array(fresh.utf8), ending), shadow(entry.name.bytes, ending))
            guard let table = number(ending), made.contains(new) else { continue }
            // What the app has configured stays.
            if ending != "config" {
                try connection.execute("DELETE FROM \(own)")
                tables.append(table)
            }
            try connection.execute("INSERT OR IGNORE INTO \(own) SELECT * FROM \(new)")
            if ending == "config" { settings = connection.changes }
        }
        try connection.execute("DROP TABLE \(SQL(text: fresh))")
        return (tables, settings)
    }
}

extension DatabaseError {
    /// Whether nothing that follows can succeed: the disk is full, memory is, or the caller ended the run.
    package var endsRun: Bool { isFull || isOutOfMemory || isInputOutput || isInterrupted }
}
