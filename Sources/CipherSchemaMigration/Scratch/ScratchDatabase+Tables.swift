internal import CipherCatalog
internal import CipherErrors
package import CipherSQLText
internal import CipherSQLite

/// Tries out tables, one at a time, and drops each of them at once.
extension ScratchDatabase {
    /// Returns the table that SQLite creates from SQL text.
    ///
    /// - Throws: `DatabaseError` if SQLite refuses the text.
    package func shape(of text: TableText, name: String) throws -> TableShape {
        try creating(text, name: name) { try TableShape(name, in: connection) }
    }

    /// Runs `body` while the table exists.
    func creating<Result>(_ text: TableText, name: String, _ body: () throws -> Result) throws -> Result {
        try connection.execute(SQL(text: text.createSQL(name: name)))
        let result = try body()
        try drop(name)
        return result
    }

    /// Returns whether a table or its indexes need a function, collation or tokenizer that is not registered.
    func needsUnregistered(_ text: TableText, name: String, indexes: [DatabaseState.Object]) throws -> Bool {
        do {
            try connection.savepoint {
                try creating(text, name: name) {
                    for index in indexes { try connection.execute(SQL(text: index.sql)) }
                }
            }
            return false
        } catch let error as DatabaseError {
            return error.unregistered != nil
        }
    }

    /// Returns SQLite's error for a CREATE TABLE statement; `nil` if SQLite accepts the statement.
    func refusal(of sql: String, name: String) throws -> DatabaseError? {
        do {
            try connection.savepoint {
                try connection.execute(SQL(text: sql))
                try drop(name)
            }
            return nil
        } catch let error as DatabaseError {
            return error
        }
    }

    /// Returns whether SQLite can append a column to a table of this kind.
    ///
    /// The trial table has the table's columns and no constraints. CHECK constraints are ignored, because only the real
    /// rows show whether they satisfy them.
    ///
    /// - Parameters:
    ///   - added: The columns that are appended before this one.
    ///   - isVirtual: Whether the column is virtual; its value depends on the row, so the trial table gets no row.
    ///   - holdsRows: Whether the table contains rows; some columns can only be appended to empty tables.
    func canAdd(
        _ column: TableText.Item, to table: TableShape, after added: [String], isVirtual: Bool, holdsRows: Bool
    ) throws -> Bool {
        let name = SQL.quoted(identifier: table.name)
        let isStrict = table.facts.isStrict
        let existing =
            table.columns.filter { $0.generation == nil }
            .map { SQL.quoted(identifier: $0.name) + (isStrict ? " \($0.type)" : "") }
            + table.columns.filter { $0.generation != nil }
            .map { SQL.quoted(identifier: $0.name) + (isStrict ? " ANY" : "") }
            + added.map { SQL.quoted(identifier: $0) + (isStrict ? " ANY" : "") }
        let suffix = isStrict ? " STRICT" : ""
        try connection.execute("PRAGMA ignore_check_constraints = ON")
        try connection.execute(SQL(text: "CREATE TABLE \(name) (\(existing.joined(separator: ", ")))\(suffix)"))
        if holdsRows, !isVirtual { try connection.execute(SQL(text: "INSERT INTO \(name) DEFAULT VALUES")) }
        let sql = "ALTER TABLE \(name) ADD COLUMN \(column.text)"
        let isTaken: Bool
        do {
            try connection.execute(SQL(text: sql))
            isTaken = true
        } catch is DatabaseError {
            isTaken = false
        }
        try drop(table.name)
        return isTaken
    }

    private func drop(_ table: String) throws {
        try connection.execute("DROP TABLE \(identifier: table)")
    }
}
