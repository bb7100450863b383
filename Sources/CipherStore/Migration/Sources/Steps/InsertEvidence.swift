internal import CipherSQLite

/// Tells from the rows of the database whether an INSERT has run before.
struct InsertEvidence {
    enum Answer {
        /// Its rows are there; once more, it could not make them.
        case ran
        /// The table is empty.
        case notRun
        case unclear
    }

    let rehearsal: ScratchDatabase
    let state: DatabaseState

    /// - Parameter made: The tables that the step itself has made, which had no rows before.
    func answer(for passage: StepCourse.Passage, made: Set<SQLName>) throws -> Answer {
        let traits = passage.traits
        guard traits.deletes.isEmpty, traits.updates.isEmpty, traits.inserts.count == 1,
            let name = traits.inserts.first,
            let table = state.tables.first(where: { SQLName($0.name) == name }), !table.isVirtual
        else { return .unclear }
        if try made.contains(name) && !state.holdsRows(table.name) { return .notRun }
        guard Self.givesValues(passage.statement.sql) else { return .unclear }
        let shape = try TableShape(table, in: state.connection)
        let columns = shape.columns.filter { $0.generation == nil }.map(\.name)
        guard let rows = try rehearsal.rows(of: passage.statement, into: table.name, columns), !rows.isEmpty else {
            return .unclear
        }
        return try rows.allSatisfy { try isThere(Array(zip(columns, $0)), shape) } ? .ran : .unclear
    }

    /// Whether it is a plain `INSERT INTO … VALUES`, which fails where a key is taken.
    private static func givesValues(_ sql: String) -> Bool {
        let tokens = SQLTokens(sql).tokens
        return tokens.first?.isKeyword("INSERT") == true && tokens.dropFirst().first?.isKeyword("INTO") == true
            && !tokens.contains { $0.isKeyword("SELECT") || $0.isKeyword("CONFLICT") }
    }

    private func isThere(_ row: [(column: String, value: Value)], _ shape: TableShape) throws -> Bool {
        for key in shape.facts.keys {
            let parts = row.filter { part in key.parts.contains { $0.column == SQLName(part.column) } }
            // NULL is never taken.
            guard parts.count == key.parts.count, !parts.contains(where: { $0.value == .null }) else { continue }
            if try exists(parts, shape.name) { return true }
        }
        // A number may have been given by SQLite, so the number alone proves nothing.
        guard shape.rowIDColumn != nil else { return false }
        return try exists(row, shape.name)
    }

    private func exists(_ parts: [(column: String, value: Value)], _ table: String) throws -> Bool {
        let condition = SQL(
            text: parts.map { "\(SQL.quoted(column: $0.column)) IS ?" }.joined(separator: " AND "),
            values: parts.map(\.value))
        return try state.connection.value(
            Bool.self, "SELECT EXISTS (SELECT 1 FROM main.\(identifier: table) WHERE \(condition))") ?? false
    }
}
