internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
package import CipherSQLiteFormat

/// A new database that is filled with the rows of a damaged one.
///
/// Each table is first filled under a plain definition, which refuses no row and converts no value, and gets its real
/// definition at the end. Each index is filled from the rows. The connection's file must be empty, and it cannot be
/// used after any failure.
/// Source: SQLite, "The Schema Table" and "PRAGMA writable_schema".
package final class RecoveredDatabase {
    private let connection: Connection
    let forms: SchemaForms
    let encoding: TextEncoding
    private var statements: [Statement]
    private(set) var apart: ApartTable
    /// The number of rows added to each table.
    package private(set) var counts: [Int]
    /// By table and key, fingerprints of the rows that were set aside because another row has their key.
    private(set) var displaced: [[UInt64: Set<UInt64>]]
    /// The statement that reads the row with a given key, by table.
    private var lookups: [Int: Statement] = [:]
    /// Notes for the report, by table and about the database as a whole.
    package private(set) var notes: [Int: [String]] = [:]
    package private(set) var generalNotes: [String] = []
    /// The shadow tables whose rows a full-text module recomputed.
    package private(set) var rebuilt: Set<Int> = []
    /// Those of ``rebuilt`` that also hold a setting of the app, which no module can recompute.
    package private(set) var holdsSetting: Set<Int> = []
    /// Whether an index holds the same key more than once.
    package private(set) var hasDuplicates = false

    /// The prefix of table and index names while tables are filled.
    private let prefix: String

    /// Begins a transaction and creates the tables.
    ///
    /// - Parameters:
    ///   - header: The header of the damaged database, if it is known.
    ///   - apart: The name of the table for rows that belong to no table, unless the schema already uses it.
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
        try connection.makeObjects(forms.tables.count, forgetting: true) {
            try connection.execute(SQL(text: definition($0)))
        }
        statements = try forms.tables.indices.map(insertion)
        if let header {
            try connection.execute(SQL(text: "PRAGMA user_version = \(header.userVersion)"))
            try connection.execute(SQL(text: "PRAGMA application_id = \(header.applicationID)"))
            if header.defaultCacheSize != 0 {
                try connection.execute(SQL(text: "PRAGMA default_cache_size = \(header.defaultCacheSize)"))
                try connection.execute(Self.cacheSize)
            }
        }
    }

    /// Sets the properties that are fixed after the first page is written, and settings that suit a file that is
    /// discarded unless it is verified.
    private static func setLayout(_ connection: Connection, _ encoding: TextEncoding, _ header: FileHeader?) throws {
        try connection.execute(encoding.pragma)
        let autoVacuum = header?.hasPointerMap == true ? (header?.isIncrementalVacuum == true ? 2 : 1) : 0
        for pragma in [
            "auto_vacuum = \(autoVacuum)", "synchronous = OFF", "locking_mode = EXCLUSIVE",
            "foreign_keys = OFF", "recursive_triggers = OFF", "ignore_check_constraints = ON",
            // A freed page is overwritten, so that no page is a hole in the file; SQLCipher would report a hole as a
            // page that is not authentic.
            "secure_delete = ON",
        ] {
            try connection.execute(SQL(text: "PRAGMA \(pragma)"))
        }
        try connection.execute(cacheSize)
    }

    private static let cacheSize: SQL = "PRAGMA cache_size = -8000"

    // MARK: Tables

    private func tableName(_ number: Int) -> String { "\(prefix)\(number)" }

    private func definition(_ number: Int) -> String {
        let table = forms.tables[number]
        var parts = table.distinct.map { "c\($0)" + ($0 == table.rowidValue ? " INTEGER PRIMARY KEY" : "") }
        guard table.isWithoutRowID else { return "CREATE TABLE \(tableName(number))(\(parts.joined(separator: ", ")))" }
        parts.append("PRIMARY KEY(\(Self.columns(table.key, table)))")
        return "CREATE TABLE \(tableName(number))(\(parts.joined(separator: ", "))) WITHOUT ROWID"
    }

    /// Returns the columns of a key under the names that they have while tables are filled.
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
        let columns = (hasOwnRowID ? ["rowid"] : []) + table.distinct.map { "c\($0)" }
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        return try Statement(
            SQL(
                text:
                    "INSERT OR IGNORE INTO \(tableName(number))(\(columns.joined(separator: ", "))) VALUES (\(marks))"
            ), on: connection)
    }

    // MARK: Rows

    /// Adds a row to its table, or sets it aside if the table has a different row with the same rowid or key.
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

    /// Returns whether a row was set aside because another row of its table has its key.
    func isDisplaced(_ row: ReadRow, in number: Int) -> Bool {
        guard !displaced[number].isEmpty else { return false }
        return displaced[number][forms.tables[number].keyPrint(row.rowid, row.values)]?
            .contains(row.values.fingerprint(isExact: true)) == true
    }

    /// Returns whether the table's row with the same key is equal to a row.
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
        return table.distinct.enumerated().allSatisfy { column, place in
            place == table.rowidValue
                || statement.column(Int32(column), holds: table.value(place, of: row), encoding)
        }
    }

    private func lookup(_ number: Int) throws -> Statement {
        let table = forms.tables[number]
        let columns = table.distinct.map { "c\($0)" }.joined(separator: ", ")
        let key =
            table.isWithoutRowID
            ? table.key.map { part in
                "c\(table.stored.firstIndex(of: part.position) ?? 0) = ?"
                    + (part.collation.map { " COLLATE \(SQL.quoted(identifier: $0.text))" } ?? "")
            }.joined(separator: " AND ") : "rowid = ?"
        return try Statement(SQL(text: "SELECT \(columns) FROM \(tableName(number)) WHERE \(key)"), on: connection)
    }

    /// Adds a row to a table.
    ///
    /// - Returns: Whether the table had no row with this rowid or key.
    private func add(_ row: ReadRow, to number: Int) throws -> Bool {
        let (table, statement) = (forms.tables[number], statements[number])
        let hasOwnRowID = !table.isWithoutRowID && table.rowidValue == nil
        if hasOwnRowID { try statement.bind(row.rowid ?? 0, at: 1) }
        for (column, place) in table.distinct.enumerated() {
            let index = Int32(column + (hasOwnRowID ? 2 : 1))
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

    /// The number of rows set aside, by reason.
    package private(set) var apartCounts: [ReadRow.Reason: Int] = [:]
    package var apartRows: Int64 { apart.rows }
    package var apartName: SchemaName { apart.name }

    // MARK: The schema

    /// Gives the tables their real definitions, creates the rest of the schema, and commits the transaction.
    ///
    /// - Parameter findings: The findings of the reading whose rows were added.
    package func finish(_ findings: ReadingFindings) throws {
        statements = []
        lookups = [:]
        if forms.tables.isEmpty {
            // SQLite writes the encoding with the first table.
            try connection.execute("CREATE TABLE cipherstore_first(a)")
            try connection.execute("DROP TABLE cipherstore_first")
        }
        try connection.makeObjects(forms.tables.count, forgetting: false, makeIndexes)
        var entries: [Redefined] = []
        for (number, table) in forms.tables.enumerated() {
            entries.append(Redefined(tableName(number), as: table.name, of: table.name, table.definition))
            for (place, index) in table.indexes.enumerated() where index.isPlain {
                entries.append(Redefined(indexName(number, place), as: index.name, of: table.name, index.sql))
            }
        }
        try redefine(entries, adding: forms.virtualTables)
        try keepSequences(findings)
        try makeComputedIndexes()
        // Without the views: one may not end, or return other text than the app indexed.
        for entry in forms.virtualTables { try rebuild(entry) }
        try redefine([], adding: forms.others)
        try connection.execute("COMMIT")
        // The modules write some of the rows when the transaction ends.
        for number in rebuilt {
            counts[number] = try connection.value(Int.self, "SELECT count(*) FROM \(forms.tables[number].name)") ?? 0
        }
    }

    /// An entry of the schema that gets its real name and definition.
    private struct Redefined {
        let name: String
        let own: SchemaName
        let table: SchemaName
        let sql: [UInt8]?

        init(_ name: String, as own: SchemaName, of table: SchemaName, _ sql: [UInt8]?) {
            (self.name, self.own, self.table, self.sql) = (name, own, table, sql)
        }
    }

    /// - Parameter others: Entries without a b-tree.
    private func redefine(_ entries: [Redefined], adding others: [SchemaText] = []) throws {
        guard !entries.isEmpty || !others.isEmpty else { return }
        var rowids: [SchemaName: Int64] = [:]
        try connection.forEachRow("SELECT name, rowid FROM sqlite_master") { row in
            rowids[try row.get(at: 0)] = try row.get(at: 1)
        }
        try connection.writingSchema {
            for entry in entries {
                guard let rowid = rowids[SchemaName(bytes: entry.name.utf8)] else { continue }
                try connection.run(
                    SQL(text: "UPDATE sqlite_master SET name = ?, tbl_name = ?, sql = ? WHERE rowid = \(rowid)"),
                    [entry.own.bytes, entry.table.bytes, entry.sql])
            }
            for entry in others {
                try connection.run(
                    "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)",
                    [Array(entry.type.utf8), entry.name.bytes, entry.table.bytes, entry.sql])
            }
        }
        try connection.forgetSchemas()
    }

    private func indexName(_ number: Int, _ place: Int) -> String { "\(prefix)\(number)_\(place)" }

    private func makeIndexes(_ number: Int) throws {
        let table = forms.tables[number]
        for (place, index) in table.indexes.enumerated() where index.isPlain {
            try make(index, indexName(number, place), on: SQL(text: tableName(number)), number) { part in
                SQL(text: "c\(table.stored.firstIndex(of: part.position) ?? table.rowidValue ?? 0)")
            }
        }
    }

    /// Creates the indexes whose entries SQLite computes from the rows, under the tables' real definitions.
    private func makeComputedIndexes() throws {
        var automatic: [Redefined] = []
        for (number, table) in forms.tables.enumerated() {
            for (place, index) in table.indexes.enumerated() where !index.isPlain {
                guard index.sql == nil else {
                    try make(index, number)
                    continue
                }
                // The index of a constraint that names a virtual column. No statement creates it by its name.
                let name = indexName(number, place)
                try connection.computingBySchema {
                    try make(index, name, on: "\(table.name)", number) { part in
                        let position = part.position >= 0 ? part.position : table.rowidValue.map { table.stored[$0] }
                        return "\(table.columns[position ?? 0].schemaName)"
                    }
                }
                automatic.append(Redefined(name, as: index.name, of: table.name, nil))
            }
        }
        try redefine(automatic)
    }

    /// Creates an index of columns that does not require unique keys, and notes keys that occur more than once if the
    /// schema requires unique ones.
    ///
    /// - Parameter column: Returns the name of a column in the table.
    private func make(
        _ index: IndexForm, _ name: String, on table: SQL, _ number: Int, _ column: (IndexState.Part) -> SQL
    ) throws {
        func collated(_ part: IndexState.Part) -> SQL { "\(column(part)) COLLATE \(part.collation ?? "BINARY")" }
        let keys = index.parts.filter(\.isKey)
        // The rest of a constraint's entries is the key of a table WITHOUT ROWID, always in ascending order. SQLite
        // would add it to an index of the app's in the order of the key.
        let isOfKey = index.sql == nil && forms.tables[number].isWithoutRowID
        let columns = (isOfKey ? index.parts : keys)
            .map { $0.isDescending ? "\(collated($0)) DESC" as SQL : collated($0) }.joined(by: ", ")
        try connection.execute("CREATE INDEX \(SQL(text: name)) ON \(table)(\(columns))")
        guard index.isUnique else { return }
        let isKey = keys.map { "\(column($0)) IS NOT NULL" as SQL }.joined(by: " AND ")
        let count = try connection.value(
            Int.self,
            """
            SELECT count(*) FROM
            (SELECT 1 FROM \(table) NOT INDEXED WHERE \(isKey) GROUP BY \(keys.map(collated).joined(by: ", ")) HAVING count(*) > 1)
            """)
        guard let count, count > 0 else { return }
        hasDuplicates = true
        let repeated = count == 1 ? "1 key occurs" : "\(count) keys occur"
        note(number, "index \(index.name) requires unique keys, but \(repeated) more than once; all rows were kept")
    }

    private func note(_ number: Int, _ text: String) { notes[number, default: []].append(text) }

    // MARK: Content computed from the rows

    private func make(_ index: IndexForm, _ number: Int) throws {
        do {
            try connection.computingBySchema { try connection.execute(SQL(bytes: index.sql ?? [])) }
        } catch let error as DatabaseError where !error.endsRun {
            if error.isConstraintViolation {
                hasDuplicates = true
                note(
                    number,
                    "index \(index.name) requires unique keys, but some keys occur more than once; all rows were kept, "
                        + "and the index was left out"
                )
            } else {
                note(number, "index \(index.name) could not be created and was left out: \(error.message)")
            }
        }
    }

    /// Ensures that every table with AUTOINCREMENT has a counter, unless all counters were read: the app may have deleted
    /// one.
    private func keepSequences(_ findings: ReadingFindings) throws {
        let counted = forms.tables.indices.filter { forms.tables[$0].countsRowIDs }
        let sequence = forms.tables.firstIndex { $0.name == "sqlite_sequence" }
        let isWhole = sequence.map { findings.tables[$0].lostPages.isEmpty && findings.tables[$0].lostRows == 0 }
        guard !counted.isEmpty, isWhole != true else { return }
        if sequence == nil {
            try connection.execute("CREATE TABLE \(SQL(text: prefix))(a INTEGER PRIMARY KEY AUTOINCREMENT)")
            try connection.execute("DROP TABLE \(SQL(text: prefix))")
        }
        for number in counted where counts[number] > 0 {
            let name = forms.tables[number].name
            try connection.run(
                """
                INSERT INTO sqlite_sequence(name, seq) SELECT ?1, (SELECT max(rowid) FROM \(name))
                WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)
                """, [name.bytes])
            guard connection.changes > 0 else { continue }
            sequencesMade.insert(number)
            if let sequence { counts[sequence] += 1 }
        }
    }

    /// The tables whose lost counter was set to the greatest rowid.
    package private(set) var sequencesMade: Set<Int> = []

    /// Recomputes the index of a full-text table from its content.
    private func rebuild(_ entry: SchemaText) throws {
        guard let text = FullTextTable(entry) else { return }
        let shadows = Dictionary(
            uniqueKeysWithValues: forms.tables.enumerated().map { ($0.element.name.folded, $0.offset) })
        func shadow(_ ending: String) -> Int? { shadows[entry.name.folded + Array("_\(ending)".utf8)] }
        guard text.hasContent, text.contentTable != nil || shadow("content") != nil else { return }
        let fresh = "\(prefix)text"
        guard let definition = text.definition(named: fresh) else {
            return generalNotes.append(
                "full-text table \(entry.name) could not be rebuilt; its index was copied unchanged")
        }
        do {
            try connection.execute("SAVEPOINT cipherstore_rebuilding")
            try connection.execute(SQL(text: definition))
            let place = text.hasStatistics ? shadow("stat") : nil
            if let place { holdsSetting.insert(place) }
            let statistics = place.map { forms.tables[$0].name }
            let merging = try statistics.flatMap { try mergeSetting(in: $0) }
            if statistics != nil {
                // A new FTS3 table gets this shadow table only with its first setting.
                try connection.execute(SQL(text: "INSERT INTO \(fresh)(\(fresh)) VALUES ('automerge=0')"))
            }
            let (emptied, settings) = try empty(text, entry, likeNew: fresh, shadow)
            // FTS5 resets the version, which it raises once rows are deleted with its option secure-delete.
            let config = text.module == "fts5" ? shadow("config") : nil
            let version = try config.flatMap {
                try connection.value(Value.self, "SELECT v FROM \(forms.tables[$0].name) WHERE k = 'version'")
            }
            try connection.checking {
                try connection.execute("INSERT INTO \(entry.name)(\(entry.name)) VALUES ('rebuild')")
            }
            if let config, let version {
                try connection.execute("UPDATE \(forms.tables[config].name) SET v = \(version) WHERE k = 'version'")
            }
            if let statistics, let merging {
                try connection.execute(
                    "INSERT OR REPLACE INTO \(statistics)(id, value) VALUES (\(Self.mergeSetting), \(merging))")
            }
            try connection.execute("RELEASE cipherstore_rebuilding")
            rebuilt.formUnion(emptied)
            if settings > 0, let config {
                counts[config] += settings
                note(config, "missing settings were added with the values that a new full-text table has")
            }
        } catch let error as DatabaseError where !error.endsRun {
            try connection.execute("ROLLBACK TO cipherstore_rebuilding")
            try connection.execute("RELEASE cipherstore_rebuilding")
            generalNotes.append(
                "full-text table \(entry.name) could not be rebuilt (\(error.message)); its index was copied unchanged"
            )
        }
    }
}

extension RecoveredDatabase {
    /// The row of the statistics of an FTS3 or FTS4 table with the app's setting `automerge`, which a rebuild deletes.
    ///
    /// Source: SQLite's source code, `FTS_STAT_AUTOINCRMERGE` in ext/fts3/fts3_write.c.
    private static let mergeSetting: Int64 = 2

    private func mergeSetting(in statistics: SchemaName) throws -> Int64? {
        try connection.value(
            Int64.self,
            "SELECT value FROM \(statistics) WHERE id = \(Self.mergeSetting) AND typeof(value) = 'integer'")
    }

    /// Fills the computed tables with the rows that they have in a new, empty full-text table, because the module reads
    /// them before it recomputes them.
    ///
    /// The method then drops that new table.
    ///
    /// - Parameter number: Returns the position of the shadow table with a given name ending; `nil` if there is no such
    ///   table.
    /// - Returns: The computed tables, and the number of lost settings that were set as in a new table.
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
            // The app's own settings are kept.
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
    /// Whether no later statement can succeed: the disk is full, memory is exhausted, input or output failed, or the
    /// caller interrupted the run.
    package var endsRun: Bool { isFull || isOutOfMemory || isInputOutput || isInterrupted }
}
