internal import CipherSQLite

/// A private database, next to without rows, in which SQLite makes a schema or takes a statement before anything is
/// changed.
///
/// Without a name SQLite makes such a database, and removes it when it is closed. The settings keep even the schema from
/// being written anywhere.
struct ScratchDatabase {
    let connection: Connection
    /// The database that errors are about.
    let subject: String?
    /// Whether everything of the database that it was made after could be made here.
    private(set) var isComplete = true

    /// An empty one.
    init(_ collations: [Collation], about subject: String? = nil) throws {
        self.subject = subject
        connection = try Connection(path: "", mode: .create)
        connection.allowDoubleQuotedStrings()
        _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY")
        try connection.execute("PRAGMA cache_spill = OFF")
        for collation in collations { try connection.register(collation) }
    }

    /// One with the schema of a database.
    init(after source: Connection, _ collations: [Collation]) throws {
        try self.init(collations, about: source.path)
        var texts: [(name: String, sql: String)] = []
        // Virtual tables first: they make the tables behind them.
        try source.forEachRow(
            """
            SELECT name, sql FROM main.sqlite_master WHERE sql IS NOT NULL
            ORDER BY type <> 'table', type = 'table' AND coalesce(rootpage, 0) <> 0, rowid
            """
        ) { texts.append((try $0.get(at: 0), try $0.get(at: 1))) }
        for (name, sql) in texts where !SQLName(name).isOfSQLite && !SQLName(name).isOfCipherStore {
            let isThere = try connection.value(
                Bool.self, "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = \(name))")
            guard isThere != true else { continue }
            do {
                try connection.execute(SQL(text: sql))
            } catch is DatabaseError {
                // A module, function or collation that only the app has: what needs it cannot be tried out here.
                isComplete = false
            }
        }
    }

    /// - Parameter previous: An earlier moment of the same database.
    func snapshot(after previous: SchemaSnapshot = SchemaSnapshot()) throws -> SchemaSnapshot {
        try SchemaSnapshot(of: connection, after: previous)
    }

    /// The views, indexes and triggers.
    func objects() throws -> [DatabaseState.Object] { try DatabaseState.readObjects(connection) }

    /// The views and triggers that cannot be compiled.
    func dangling() throws -> DanglingObjects {
        try DanglingObjects(in: connection, DatabaseState(of: connection, countsRows: false) { nil })
    }
}
