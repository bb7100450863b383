internal import CCipherEngine

extension Connection {
    /// Runs one statement to completion and ignores its rows.
    ///
    /// - Throws: ``DatabaseError``.
    public func execute(_ sql: SQL) throws {
        try withStatement(sql) { statement in
            while try statement.step() {}
        }
    }

    /// Runs several statements without values.
    ///
    /// The text must be in the program's source, because a value pasted into the text could contain anything; use
    /// ``execute(_:)`` for values.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; the statements before it have run.
    public func executeScript(_ script: StaticString) throws {
        try executeScript(text: script.description)
    }

    /// Runs several statements without values, from text that is created or read at run time.
    ///
    /// The text must not contain any user input. The caller must quote names that are pasted into it.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; the statements before it have run.
    public func executeScript(text script: String) throws {
        try checkThread()
        var text = script
        try text.withUTF8 { bytes in
            var rest = bytes
            while let next = try Statement.first(of: rest, on: self) {
                try checkUse(next.statement.sql)
                record(next.statement)
                defer { _ = recordLateAccess(next.statement) }
                while try next.statement.step() {}
                rest = next.rest
            }
        }
    }

    /// Lends each row of a query to `body`, in order.
    ///
    /// - Throws: ``DatabaseError``, or any error thrown by `body`, which ends the query.
    public func forEachRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(of: statement)
            while try statement.step() {
                try body(row)
                // `body` may have closed the connection.
                try checkThread()
            }
        }
    }

    /// Returns the first column of every row.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ type: Column.Type, _ sql: SQL) throws -> [Column] {
        var result: [Column] = []
        try forEachRow(sql) { result.append(try $0.get(at: 0)) }
        return result
    }

    /// Returns the first column of the first row; `nil` if there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` if the column is NULL and the type is not an optional.
    public func value<Column: ColumnReadable>(_ type: Column.Type, _ sql: SQL) throws -> Column? {
        var result: Column?
        // The type is explicit, because the inferred type would be the optional, which would make NULL the same as a
        // missing row.
        try withFirstRow(sql) { row in result = try row.get(Column.self, at: 0) }
        return result
    }

    /// Returns the first column of every row, with the type inferred from the context.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ sql: SQL) throws -> [Column] { try values(Column.self, sql) }

    /// Returns the first column of the first row, with the type inferred from the context; `nil` if there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` if the column is NULL. For a column that may be NULL, use
    ///   ``value(_:_:)`` with an optional type.
    public func value<Column: ColumnReadable>(_ sql: SQL) throws -> Column? { try value(Column.self, sql) }

    /// Lends the first row of a query to `body`, if there is one.
    ///
    /// This is a separate function without generic types, because Swift 6.3's optimizer cannot create a row in a
    /// generic one.
    private func withFirstRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(of: statement)
            if try statement.step() { try body(row) }
            try statement.finish()
        }
    }

    /// The rowid of the latest insertion.
    ///
    /// The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 { isUsable ? sqlite3_last_insert_rowid(handle) : 0 }

    /// The number of rows that the latest statement changed.
    ///
    /// The corresponding C function is `sqlite3_changes`.
    public var changes: Int { isUsable ? Int(sqlite3_changes(handle)) : 0 }

    /// Lends a compiled statement with its values bound.
    ///
    /// - Parameter isKept: Whether the statement is likely to run again.
    package func withStatement<Result>(
        _ sql: SQL, isKept: Bool = true, _ body: (Statement) throws -> Result
    ) throws -> Result {
        try checkUse(sql.text)
        // A callback for compiled statements must be called before each run.
        let isKept = isKept && hasCompiled == nil
        let isLent = isLent
        let statement =
            try (isKept ? (isLent ? lentCache.take(sql) : cache.take(sql)) : nil) ?? Statement(sql, on: self)
        record(statement)
        defer {
            statement.reset()
            // A statement that was compiled again may read and write something that was not recorded. Pragmas are not
            // cached, because the schema is queried table by table, which would push everything else out of the cache.
            if recordLateAccess(statement), isKept, !statement.isPragma {
                if isLent { lentCache.put(statement) } else { cache.put(statement) }
            }
        }
        try statement.bind(valuesOf: sql)
        return try body(statement)
    }
}
