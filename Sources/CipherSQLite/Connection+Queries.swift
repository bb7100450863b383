internal import CCipherEngine

extension Connection {
    /// Runs one statement to its end and ignores its rows.
    ///
    /// - Throws: ``DatabaseError``.
    public func execute(_ sql: SQL) throws {
        try withStatement(sql) { statement in
            while try statement.step() {}
        }
    }

    /// Runs several statements without values.
    ///
    /// The text is the program's own: a value that was pasted into it could be anything, and belongs into ``execute(_:)``.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; those before it have run.
    public func executeScript(_ script: StaticString) throws {
        try executeScript(text: script.description)
    }

    /// Runs several statements without values, of a text that was made or read while the program runs.
    ///
    /// Nothing of a user's may be in it. Names that are pasted into it are quoted by the caller.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; those before it have run.
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
    /// - Throws: ``DatabaseError``, or what `body` throws, which ends the query.
    public func forEachRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(of: statement)
            while try statement.step() {
                try body(row)
                // It may have closed the connection.
                try checkThread()
            }
        }
    }

    /// The first column of every row.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ type: Column.Type, _ sql: SQL) throws -> [Column] {
        var result: [Column] = []
        try forEachRow(sql) { result.append(try $0.get(at: 0)) }
        return result
    }

    /// The first column of the first row, `nil` where there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` if it is NULL and the type is not an optional.
    public func value<Column: ColumnReadable>(_ type: Column.Type, _ sql: SQL) throws -> Column? {
        var result: Column?
        // The type is named, for what is inferred here is the optional, which takes NULL for a missing row.
        try withFirstRow(sql) { row in result = try row.get(Column.self, at: 0) }
        return result
    }

    /// The first column of every row, of the type that is expected.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ sql: SQL) throws -> [Column] { try values(Column.self, sql) }

    /// The first column of the first row, of the type that is expected; `nil` where there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` if it is NULL: for a column that may be, name an optional as
    ///   the type.
    public func value<Column: ColumnReadable>(_ sql: SQL) throws -> Column? { try value(Column.self, sql) }

    /// Lends the first row of a query to `body`, where there is one.
    ///
    /// On its own because no type is generic here: if one is, Swift 6.3's optimizer cannot make a row.
    private func withFirstRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(of: statement)
            if try statement.step() { try body(row) }
            try statement.finish()
        }
    }

    /// The rowid of the latest insert.
    ///
    /// The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 { isUsable ? sqlite3_last_insert_rowid(handle) : 0 }

    /// How many rows the latest statement changed.
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
        // Who is told of statements is told of each run.
        let isKept = isKept && hasCompiled == nil
        let isLent = isLent
        let statement =
            try (isKept ? (isLent ? lentCache.take(sql) : cache.take(sql)) : nil) ?? Statement(sql, on: self)
        record(statement)
        defer {
            statement.reset()
            // What was compiled anew reads and writes other than what is known of it. And a schema is asked about table by
            // table, which would push all else out of the cache.
            if recordLateAccess(statement), isKept, !statement.isPragma {
                if isLent { lentCache.put(statement) } else { cache.put(statement) }
            }
        }
        try statement.bind(valuesOf: sql)
        return try body(statement)
    }
}
