internal import CipherSQLite

/// The rows that a template brings for one table.
struct SeedRows {
    private let table: String
    private let template: TemplateDatabase
    private let columns: [String]
    private let key: [String]
    private let count: Int

    /// - Parameter isNew: Whether the user's database has no such table yet.
    /// - Returns: `nil` where the table has no key by which a row could be known, and is not new: its rows were brought
    ///   when it was made.
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

    /// The step of a plan that brings them.
    var operation: Plan.Operation {
        let rows = count == 1 ? "1 row" : "\(count) rows"
        return Plan.Operation(
            .copyRows, table: table,
            reason: "the template brings \(rows); a row of the user's with the same key stays as it is",
            action: Plan.Operation.Action("\(rows) of the template") { [self] in try copy(to: $0) })
    }

    /// Copies the rows whose keys the table lacks.
    ///
    /// A row that another unique column of the user's rows excludes is left out too. No trigger fires: the app's own
    /// upgrade began with a copy of the file, in which the rows were already.
    private func copy(to connection: Connection) throws {
        let names = columns.map { SQL.quoted(column: $0) }.joined(separator: ", ")
        let target = "main.\(SQL.quoted(identifier: table))"
        let values = (1...max(columns.count, 1)).map { "?\($0)" }.joined(separator: ", ")
        let isKnown = columns.enumerated().filter { key.contains($0.element) }
            .map { "\(SQL.quoted(column: $0.element)) IS ?\($0.offset + 1)" }.joined(separator: " AND ")
        let condition = key.isEmpty ? "" : " WHERE NOT EXISTS (SELECT 1 FROM \(target) WHERE \(isKnown))"
        let insert = "INSERT OR IGNORE INTO \(target) (\(names)) SELECT \(values)\(condition)"
        do {
            try connection.withoutTriggers {
                try template.read { source in
                    try source.forEachRow(SQL(text: "SELECT \(names) FROM \(target)")) { row in
                        let values = (0..<row.count).map { row.value(at: $0) }
                        do {
                            try connection.execute(SQL(text: insert, values: values))
                        } catch let error as DatabaseError {
                            throw Refusal(error: error)
                        }
                    }
                }
            }
        } catch let refusal as Refusal {
            throw refusal.error
        }
    }

    /// A failure of the user's database, which is none of the template.
    private struct Refusal: Error {
        let error: DatabaseError
    }
}
