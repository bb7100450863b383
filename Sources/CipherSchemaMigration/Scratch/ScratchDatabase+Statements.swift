internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// Statements, one after the other: those that define the schema run, and others are only compiled, for what they do
/// depends on rows.
extension ScratchDatabase {
    /// Tries a statement.
    ///
    /// - Parameter code: Whose fault it is where SQLite refuses the statement: by default the schema's that is here.
    /// - Throws: ``StoreError`` that names the place.
    func run(_ statement: PlacedStatement, blaming code: StoreError.Code = .migration) throws -> StatementTraits {
        try StepGuard.checkText(statement, path: subject)
        var traits = StatementTraits()
        do {
            try StepGuard(allowsSavepoints: false) { traits.note($0) }
                .guarding(connection, statement.place) {
                    // Not out of the cache: only what is compiled is judged.
                    let compiled = try Statement(SQL(text: statement.sql), on: connection)
                    try compiled.bind(valuesOf: SQL(text: statement.sql))
                    guard traits.isDefinition || traits.setsRenaming else { return }
                    while try compiled.step() {}
                }
        } catch let error as DatabaseError {
            throw StoreError.unreachable(
                subject, "\(statement.place) cannot run", correct: .step, code: code, underlying: error)
        } catch let error as StoreError {
            throw error.at(subject)
        }
        return traits
    }

    /// Whether SQLite takes a statement that writes rows; it is only compiled.
    ///
    /// - Returns: `true` also where no one can tell.
    func accepts(_ statement: PlacedStatement) throws -> Bool {
        do {
            _ = try run(statement)
            return true
        } catch let error as StoreError where error.underlying != nil {
            return !isComplete
        }
    }

    /// What SQLite says of a name in double quotes that it takes for text, in a statement that it accepts.
    func nameTakenForText(in statement: PlacedStatement) throws -> String? {
        guard statement.sql.utf8.contains(UInt8(ascii: "\"")) else { return nil }
        return try connection.complaint(aboutNamesIn: SQL(text: statement.sql))
    }

    /// The rows that an INSERT makes where there are none; `nil` if it cannot be tried.
    func rows(of statement: PlacedStatement, into table: String, _ columns: [String]) throws -> [[Value]]? {
        let list = columns.map { SQL.quoted(identifier: $0) }.joined(separator: ", ")
        return try undoing {
            var rows: [[Value]] = []
            try connection.execute(SQL(text: statement.sql))
            try connection.forEachRow("SELECT \(SQL(text: list)) FROM main.\(identifier: table)") { row in
                rows.append((0..<row.count).map { row.value(at: $0) })
            }
            return rows
        }
    }

    /// Whether an INSERT gives its rows their numbers, which SQLite does otherwise: the next behind the highest.
    func numbers(_ statement: PlacedStatement, into shape: TableShape, by key: ColumnState) throws -> Bool {
        let name = SQL.quoted(identifier: key.name)
        let highest = Int64.max / 2
        let columns = shape.columns.filter { $0.generation == nil }.map { column in
            SQL.quoted(identifier: column.name) + (column.name == key.name ? " INTEGER PRIMARY KEY" : "")
        }
        return try undoing {
            try connection.execute("DROP TABLE main.\(identifier: shape.name)")
            try connection.execute(
                SQL(text: "CREATE TABLE main.\(SQL.quoted(identifier: shape.name))(\(columns.joined(separator: ", ")))")
            )
            try connection.execute(
                "INSERT INTO main.\(identifier: shape.name) (\(SQL(text: name))) VALUES (\(highest))")
            try connection.execute(SQL(text: statement.sql))
            return try connection.value(
                Bool.self, "SELECT max(\(SQL(text: name))) = \(highest) FROM main.\(identifier: shape.name)") ?? true
        } ?? true
    }

    /// Runs `body` and takes back what it did; `nil` if SQLite refuses it.
    ///
    /// What needs rows or functions that are not here tells nothing.
    private func undoing<Result>(_ body: () throws -> Result) throws -> Result? {
        var result: Result?
        do {
            try connection.savepoint {
                result = try body()
                throw Undo()
            }
        } catch is Undo {
            return result
        } catch is DatabaseError {
            return nil
        }
        return result
    }

    private struct Undo: Error {}
}
