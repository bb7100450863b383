internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Determines from the rows of the database whether an INSERT has already run.
struct InsertEvidence {
    enum Answer {
        /// The rows of the INSERT exist, and it could not insert them again.
        case ran
        /// None of the rows of the INSERT exists.
        case notRun
        /// Equal rows exist that may not come from the INSERT, or rows with some of the keys exist.
        case unclear
        /// The statement is not an INSERT of values that could be searched for.
        case unknown
    }

    let rehearsal: ScratchDatabase
    let state: DatabaseState

    /// Returns whether the INSERT has run.
    ///
    /// - Parameter made: The tables that the step itself created, which had no rows before.
    func answer(for passage: StepSchemas.Passage, made: Set<SQLName> = []) throws -> Answer {
        let traits = passage.traits
        guard traits.deletes.isEmpty, traits.updates.isEmpty, traits.inserts.count == 1,
            let name = traits.inserts.first,
            let table = state.tables.first(where: { SQLName($0.name) == name }), !table.isVirtual
        else { return .unknown }
        if try made.contains(name) && !state.holdsRows(table.name) { return .notRun }
        guard Self.givesValues(passage.statement.sql) else { return .unknown }
        let shape = try TableShape(table, in: state.connection)
        let columns = shape.columns.filter { $0.generation == nil }.map(\.name)
        guard let rows = try rehearsal.rows(of: passage.statement, into: table.name, columns), !rows.isEmpty else {
            return .unknown
        }
        var number = shape.rowIDColumn
        if let key = number, try !rehearsal.numbers(passage.statement, into: shape, by: key) { number = nil }
        let answers = Set(try rows.map { try answer(for: Array(zip(columns, $0)), shape, isNumbered: number != nil) })
        guard let answer = answers.first, answers.count == 1 else { return .unclear }
        // A table that the step created may once have contained these rows, which may have changed since.
        return answer == .notRun && made.contains(name) ? .unclear : answer
    }

    /// Returns whether the statement is a plain `INSERT INTO … VALUES`, which fails if a key is already used.
    private static func givesValues(_ sql: String) -> Bool {
        let tokens = SQLTokens(sql).tokens
        return tokens.first?.isKeyword("INSERT") == true && tokens.dropFirst().first?.isKeyword("INTO") == true
            && !tokens.contains { $0.isKeyword("SELECT") || $0.isKeyword("CONFLICT") }
    }

    /// Returns whether one row exists.
    ///
    /// - Parameter isNumbered: Whether the statement specifies the rowid, rather than SQLite.
    private func answer(
        for row: [(column: String, value: Value)], _ shape: TableShape, isNumbered: Bool
    ) throws -> Answer {
        var isKeyed = false
        for key in shape.facts.keys {
            let parts = row.filter { part in key.parts.contains { $0.column == SQLName(part.column) } }
            // NULL never conflicts.
            guard parts.count == key.parts.count, !parts.contains(where: { $0.value == .null }) else { continue }
            isKeyed = true
            if try exists(parts, shape.name) { return .ran }
        }
        let number = shape.rowIDColumn?.name
        if isNumbered {
            guard try exists(row.filter { $0.column == number }, shape.name) else { return .notRun }
            // SQLite may have assigned the rowid to the existing row.
            return try exists(row, shape.name) ? .ran : .unclear
        }
        return try !isKeyed && exists(row.filter { $0.column != number }, shape.name) ? .unclear : .notRun
    }

    private func exists(_ parts: [(column: String, value: Value)], _ table: String) throws -> Bool {
        guard !parts.isEmpty else { return false }
        let condition = SQL(
            text: parts.map { "\(SQL.quoted(column: $0.column)) IS ?" }.joined(separator: " AND "),
            values: parts.map(\.value))
        return try state.connection.value(
            Bool.self, "SELECT EXISTS (SELECT 1 FROM main.\(identifier: table) WHERE \(condition))") ?? false
    }
}
