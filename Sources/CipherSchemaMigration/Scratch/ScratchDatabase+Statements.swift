internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// Tries statements one after another: those that define the schema run, and other statements are only compiled,
/// because their effect depends on rows.
extension ScratchDatabase {
    /// Tries a statement.
    ///
    /// - Parameter code: The error code if SQLite refuses the statement; by default, the current schema is at fault.
    /// - Throws: ``StoreError`` that names the place of the statement.
    func run(_ statement: PlacedStatement, blaming code: StoreError.Code = .migration) throws -> StatementTraits {
        try StepGuard.checkText(statement, path: subject)
        var traits = StatementTraits()
        do {
            try StepGuard(allowsSavepoints: false) { traits.note($0) }
                .guarding(connection, statement.place) {
                    // The statement is not taken from the cache, because a statement is checked only while it is
                    // compiled.
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

    /// Returns whether SQLite accepts a statement that writes rows; the statement is only compiled.
    ///
    /// - Returns: Also `true` if this cannot be determined.
    func accepts(_ statement: PlacedStatement) throws -> Bool {
        do {
            _ = try run(statement)
            return true
        } catch let error as StoreError where error.underlying != nil {
            return !isComplete
        }
    }

    /// Returns SQLite's complaint about a name in double quotes that it treats as text, in a statement that it accepts.
    func nameTakenForText(in statement: PlacedStatement) throws -> String? {
        guard statement.sql.utf8.contains(UInt8(ascii: "\"")) else { return nil }
        return try connection.complaint(aboutNamesIn: SQL(text: statement.sql))
    }

    /// Returns the rows that an INSERT adds to an empty table; `nil` if the statement cannot be tried.
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

    /// Returns whether an INSERT specifies the rowids of its rows; otherwise, SQLite assigns the next number after the
    /// highest rowid.
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

    /// Runs `body` and undoes its changes; returns `nil` if SQLite refuses a statement.
    ///
    /// The result is also `nil` for a statement that needs rows or functions that are missing here.
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
