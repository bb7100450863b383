internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The rows that a template adds to one table.
struct SeedRows {
    private let table: String
    private let template: TemplateDatabase
    private let columns: [String]
    private let key: [String]
    private let count: Int

    /// Creates the rows for a table; returns `nil` if the table has no key to identify rows and is not new, because its
    /// rows were added when it was created.
    ///
    /// - Parameter isNew: Whether the user's database does not have the table yet.
    init?(_ table: String, of template: TemplateDatabase, isNew: Bool) throws {
        self.table = table
        self.template = template
        let (found, count) = try template.read { connection in
            (
                try ColumnState.read(table: table, from: connection).filter { $0.generation == nil },
                try connection.value(Int.self, "SELECT count(*) FROM main.\(identifier: table)") ?? 0
            )
        }
        columns = found.map(\.name)
        key = found.filter { $0.primaryKeyPosition > 0 }.map(\.name)
        self.count = count
        if key.isEmpty && !isNew { return nil }
    }

    /// The step of a plan that adds the rows.
    var operation: Plan.Operation {
        let rows = count == 1 ? "1 row" : "\(count) rows"
        return Plan.Operation(
            .copyRows, table: table,
            reason: "the template contains \(rows); any row whose key is not in the table yet is added",
            action: Plan.Operation.Action("\(rows) from the template") { [self] in try copy(to: $0) })
    }

    /// Returns a finding about rows that will not be added because a user's row has the value of a unique column under
    /// another key; `nil` if there are no such rows.
    func excluded(
        by present: TableState, _ state: DatabaseState, renamed: [String: String]
    ) throws -> Plan.Finding? {
        func name(_ column: String) -> String? {
            let former = renamed.first { SQLName($0.key) == SQLName(column) }?.value
            return present.column(column)?.name ?? former.flatMap { present.column($0)?.name }
        }
        // SQLite searches a joined table by an index, and builds that index if there is none.
        func found(by parts: [String]) -> String? {
            let names = parts.map(name)
            guard !parts.isEmpty, !names.contains(nil) else { return nil }
            let matches = zip(parts, names).map { part, name in
                let place = columns.firstIndex { SQLName($0) == SQLName(part) } ?? 0
                return "present.\(SQL.quoted(column: name ?? "")) = +seed.value\(place + 1)"
            }
            return "SELECT seed.rowid FROM \(Self.seeds) AS seed JOIN main.\(SQL.quoted(identifier: present.name)) "
                + "AS present ON \(matches.joined(separator: " AND "))"
        }
        let taken = try uniqueColumns().compactMap { found(by: $0) }
        guard !taken.isEmpty, let known = found(by: key) else { return nil }
        let isTaken = taken.map { "rowid IN (\($0))" }.joined(separator: " OR ")
        let excluded = "SELECT count(*) FROM \(Self.seeds) WHERE rowid NOT IN (\(known)) AND (\(isTaken))"
        let count = try withSeeds(state.connection) {
            try state.connection.value(Int.self, SQL(text: excluded)) ?? 0
        }
        guard count > 0 else { return nil }
        return Plan.Finding(
            .warning, table: self.table, count: count,
            message:
                "\(count) template row\(count == 1 ? "" : "s") will not be added to \(self.table), because the "
                + "database already contains the same unique values in rows that have different keys")
    }

    private static let seeds = "temp.cipherstore_seeds"

    /// Runs `body` while the connection has a temporary table with the template's rows.
    private func withSeeds<Result>(_ connection: Connection, _ body: () throws -> Result) throws -> Result {
        let names = columns.indices.map { "value\($0 + 1)" }.joined(separator: ", ")
        let insert = "INSERT INTO \(Self.seeds) VALUES (\(places))"
        try connection.execute(SQL(text: "CREATE TEMP TABLE cipherstore_seeds (\(names))"))
        defer { try? connection.execute(SQL(text: "DROP TABLE \(Self.seeds)")) }
        try forEachSeed { try connection.execute(SQL(text: insert, values: $0)) }
        return try body()
    }

    /// Returns the columns of unique indexes of the template's table, except its primary key.
    private func uniqueColumns() throws -> [[String]] {
        try template.read { source in
            try IndexState.read(table: SchemaName(bytes: table.utf8), from: source)
                .filter { $0.isUnique && $0.origin != .primaryKey && !$0.isPartial }
                .map { try $0.parts(source).filter(\.isKey).map(\.name) }
                // An expression has no name.
                .filter { !$0.contains(nil) }
                .map { $0.compactMap { $0?.text } }
        }
    }

    /// The parameters for the values of a row.
    private var places: String { columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ") }

    private var names: String { columns.map { SQL.quoted(column: $0) }.joined(separator: ", ") }

    /// Copies the rows whose keys the table lacks.
    ///
    /// A row is also omitted if a user's row has its value in another unique column. No trigger fires, because the
    /// app's own upgrade began with a copy of the file that already contained the rows.
    private func copy(to connection: Connection) throws {
        let target = "main.\(SQL.quoted(identifier: table))"
        let keys = Set(key.map(SQLName.init))
        let isKnown = columns.enumerated().filter { keys.contains(SQLName($0.element)) }
            .map { "\(SQL.quoted(column: $0.element)) IS ?\($0.offset + 1)" }.joined(separator: " AND ")
        let condition = key.isEmpty ? "" : " WHERE NOT EXISTS (SELECT 1 FROM \(target) WHERE \(isKnown))"
        let insert = "INSERT OR IGNORE INTO \(target) (\(names)) SELECT \(places)\(condition)"
        try connection.withoutTriggers {
            try forEachSeed { try connection.execute(SQL(text: insert, values: $0)) }
        }
    }

    /// Calls `body` with the values of each row of the template; a failure of `body` is not attributed to the template.
    private func forEachSeed(_ body: ([Value]) throws -> Void) throws {
        do {
            try template.read { source in
                try source.forEachRow(SQL(text: "SELECT \(names) FROM main.\(SQL.quoted(identifier: table))")) { row in
                    do {
                        try body((0..<row.count).map { row.value(at: $0) })
                    } catch let error as DatabaseError {
                        throw Refusal(error: error)
                    }
                }
            }
        } catch let refusal as Refusal {
            throw refusal.error
        }
    }

    /// A failure of the user's database rather than of the template.
    private struct Refusal: Error {
        let error: DatabaseError
    }
}
