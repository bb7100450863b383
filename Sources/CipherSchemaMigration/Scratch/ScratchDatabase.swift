internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite

/// A private database with hardly any rows, in which SQLite creates a schema or compiles a statement before anything is
/// changed.
///
/// SQLite creates such a database if the name is empty, and removes it when the connection is closed. The settings
/// prevent even the schema from being written to disk.
package struct ScratchDatabase {
    package let connection: Connection
    /// The path to name in errors, that of the database that is checked.
    let subject: String?
    private let extensions: SQLExtensions
    /// Whether the whole schema of the copied database could be created here.
    package private(set) var isComplete = true

    /// Creates an empty database.
    package init(_ extensions: SQLExtensions, about subject: String? = nil) throws {
        self.subject = subject
        self.extensions = extensions
        connection = try Connection(path: "", mode: .create)
        try ConnectionProfile.scratch.with(extensions: extensions).apply(to: connection)
        _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY")
        try connection.execute("PRAGMA cache_spill = OFF")
    }

    /// Creates a database with the schema of another database.
    package init(after source: Connection, _ extensions: SQLExtensions) throws {
        try self.init(extensions, about: source.path)
        enum Kind: Int { case virtualTable, table, view, index, trigger }
        var statements: [Kind: [(name: SQLName, sql: String)]] = [:]
        try source.forEachRow(
            """
            SELECT name, sql, CASE type WHEN 'table' THEN coalesce(rootpage, 0) <> 0 WHEN 'view' THEN 2
                WHEN 'index' THEN 3 ELSE 4 END
            FROM main.sqlite_master WHERE sql IS NOT NULL ORDER BY rowid
            """
        ) { row in
            let name = SQLName(try row.get(at: 0))
            guard !name.isOfSQLite, !name.isOfCipherStore else { return }
            statements[Kind(rawValue: try row.get(at: 2)) ?? .trigger, default: []].append((name, try row.get(at: 1)))
        }
        // Virtual tables come first, because they create the tables that store their rows.
        var made: Set<SQLName> = []
        var latest: Int64 = 0
        for table in statements[.virtualTable] ?? [] where !made.contains(table.name) {
            try makeAlone(table.sql)
            try connection.forEachRow("SELECT name, rowid FROM main.sqlite_master WHERE rowid > \(latest)") { row in
                made.insert(SQLName(try row.get(at: 0)))
                latest = try row.get(at: 1)
            }
        }
        // A table or a view can be created while no other object is known; an index or a trigger cannot.
        for kind in [Kind.table, .view, .index, .trigger] {
            // The names of triggers are separate from all other names.
            let texts = (statements[kind] ?? []).filter { kind == .trigger || !made.contains($0.name) }.map(\.sql)
            try make(texts, forgetting: kind == .table || kind == .view)
        }
    }

    /// Returns a database with the schema of another database and the same extensions.
    func copy(of source: Connection) throws -> ScratchDatabase { try ScratchDatabase(after: source, extensions) }

    /// Creates objects, and records if one cannot be created.
    ///
    /// - Parameter forgetting: Whether each object can be created while SQLite does not know the others.
    private mutating func make(_ statements: [String], forgetting: Bool) throws {
        var areAllTaken = true
        do {
            try connection.transaction {
                try connection.makeObjects(statements.count, forgetting: forgetting) { number in
                    let statement: Statement
                    do {
                        statement = try Statement(SQL(text: statements[number]), on: connection)
                    } catch is DatabaseError {
                        areAllTaken = false
                        return
                    }
                    while try statement.step() {}
                }
            }
            isComplete = isComplete && areAllTaken
        } catch is DatabaseError {
            // A statement could be compiled, but failed while it was running. Only a rollback of its own transaction
            // undoes such a statement completely.
            try connection.execute("PRAGMA writable_schema = OFF")
            for sql in statements { try makeAlone(sql) }
        }
    }

    /// Creates an object, or records that it cannot be created.
    private mutating func makeAlone(_ sql: String) throws {
        do {
            try connection.execute(SQL(text: sql))
        } catch is DatabaseError {
            // The object needs a module, function or collation that only the app has, so it cannot be tried here.
            isComplete = false
        }
    }

    /// Returns a snapshot of the schema.
    ///
    /// - Parameter previous: An earlier snapshot of the same database.
    package func snapshot(after previous: SchemaSnapshot = SchemaSnapshot()) throws -> SchemaSnapshot {
        try SchemaSnapshot(of: connection, after: previous)
    }

    /// Returns the views, indexes and triggers.
    func objects() throws -> [DatabaseState.Object] { try DatabaseState.readObjects(connection) }

    /// Returns the views and triggers that cannot be compiled.
    package func dangling() throws -> DanglingObjects {
        try DanglingObjects(in: connection, DatabaseState(of: connection, countsRows: false) { nil })
    }
}
