internal import CipherSQLite

/// A private database without rows, in which statements are tried out before anything is changed.
///
/// Statements that define the schema run; others are only compiled, for what they do depends on rows.
struct Rehearsal {
    /// What SQLite tells of a statement.
    struct Traits {
        /// Whether it makes, changes or removes a part of the schema.
        var isDefinition = false
        /// Whether it is a setting that decides what later definitions may do.
        var setsRenaming = false
        /// The tables that it writes, and the columns that it updates.
        var inserts: Set<SQLName> = []
        var deletes: Set<SQLName> = []
        var updates: [SQLName: Set<SQLName>] = [:]

        var writesRows: Bool { !isDefinition && !(inserts.isEmpty && deletes.isEmpty && updates.isEmpty) }
        var tables: Set<SQLName> { inserts.union(deletes).union(updates.keys) }
    }

    let connection: Connection
    /// The database that errors are about.
    private let path: String
    /// Whether everything that the database has could be made here.
    private(set) var isComplete = true

    init(collations: [Collation], path: String) throws {
        self.path = path
        connection = try Connection(path: "", mode: .create)
        try connection.execute("PRAGMA journal_mode = MEMORY")
        connection.allowDoubleQuotedStrings()
        for collation in collations { try connection.register(collation) }
    }

    /// Takes over a schema.
    mutating func load(_ source: Connection) throws {
        var texts: [(name: String, sql: String)] = []
        // Virtual tables first: they make the tables behind them.
        try source.forEachRow(
            """
            SELECT name, sql FROM main.sqlite_master WHERE sql IS NOT NULL
            ORDER BY type <> 'table', type = 'table' AND coalesce(rootpage, 0) <> 0, rowid
            """
        ) { texts.append((try $0.get(at: 0), try $0.get(at: 1))) }
        for (name, sql) in texts
        where !SQLName(name).hasPrefix("sqlite_") && !SQLName(name).hasPrefix("cipherstore_") {
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

    /// - Parameter previous: An earlier moment of the same rehearsal.
    func snapshot(after previous: SchemaSnapshot = SchemaSnapshot()) throws -> SchemaSnapshot {
        try SchemaSnapshot(of: connection, after: previous)
    }

    /// The views, indexes and triggers.
    func objects() throws -> [DatabaseState.Object] { try DatabaseState.readObjects(connection) }

    /// Tries a statement.
    ///
    /// - Parameter code: Whose fault it is where SQLite refuses the statement: by default the schema's that is here.
    /// - Throws: ``StoreError`` that names the place.
    func run(_ statement: StepStage.Statement, blaming code: StoreError.Code = .migration) throws -> Traits {
        try StepGuard.checkText(statement, path: path)
        var traits = Traits()
        do {
            try StepGuard(allowsSavepoints: false) { Self.note($0, in: &traits) }
                .guarding(connection, statement.place) {
                    // Not out of the cache: only what is compiled is judged.
                    let compiled = try Statement(statement.sql, on: connection)
                    try compiled.bind(valuesOf: SQL(text: statement.sql))
                    guard traits.isDefinition || traits.setsRenaming else { return }
                    while try compiled.step() {}
                }
        } catch let error as DatabaseError {
            throw StoreError(
                code, path: path, "\(statement.place) cannot run",
                advice: "correct the step; nothing was changed", underlying: error)
        } catch let error as StoreError {
            throw StoreError(error.code, path: path, error.detail, advice: error.advice, underlying: error.underlying)
        }
        return traits
    }

    /// Whether SQLite takes a statement that writes rows; it is only compiled.
    ///
    /// - Returns: `true` also where nobody can tell.
    func accepts(_ statement: StepStage.Statement) throws -> Bool {
        do {
            _ = try run(statement)
            return true
        } catch let error as StoreError where error.underlying != nil {
            return !isComplete
        }
    }

    /// The rows that an INSERT makes where there are none; `nil` where it cannot be tried.
    func rows(of statement: StepStage.Statement, into table: String, _ columns: [String]) throws -> [[Value]]? {
        struct Undo: Error {}
        var rows: [[Value]] = []
        let list = columns.map { SQL.quoted(identifier: $0) }.joined(separator: ", ")
        do {
            return try connection.savepoint { () throws -> [[Value]]? in
                try connection.execute(SQL(text: statement.sql))
                try connection.forEachRow("SELECT \(SQL(text: list)) FROM main.\(identifier: table)") { row in
                    rows.append((0..<row.count).map { row.value(at: $0) })
                }
                throw Undo()
            }
        } catch is Undo {
            return rows
        } catch is DatabaseError {
            // What needs rows or functions that are not here tells nothing.
            return nil
        }
    }

    private static func note(_ action: StatementAction, in traits: inout Traits) {
        if action.kind == .definition { traits.isDefinition = true }
        if action.kind == .pragma, SQLName(action.subject) == SQLName("legacy_alter_table") {
            traits.setsRenaming = true
        }
        let table = SQLName(action.subject)
        // Of SQLite's own tables the one that a statement may write by name.
        let isOwn = table.hasPrefix("sqlite_") && table != SQLName("sqlite_sequence")
        guard action.cause == nil, !isOwn else { return }
        switch action.kind {
        case .insert: traits.inserts.insert(table)
        case .delete: traits.deletes.insert(table)
        case .update: traits.updates[table, default: []].insert(SQLName(action.detail ?? ""))
        default: break
        }
    }
}
