internal import CSQLCipher

extension Connection {
    /// Runs one statement to its end and ignores its rows.
    ///
    /// - Throws: ``DatabaseError``.
    public func execute(_ sql: SQL) throws {
        try withStatement(sql) { statement in
            while try statement.step() {}
        }
    }

    /// Runs a text of several statements without values.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; those before it have run.
    public func executeScript(_ script: String) throws {
        var text = script
        try text.withUTF8 { bytes in
            var rest = bytes
            while let next = try Statement.first(of: rest, on: self) {
                try checkTransaction(next.statement.sql)
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
            while try statement.step() { try body(row) }
        }
    }

    /// The first column of every row.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ type: Column.Type = Column.self, _ sql: SQL) throws -> [Column] {
        var result: [Column] = []
        try forEachRow(sql) { result.append(try $0.get(at: 0)) }
        return result
    }

    /// The first column of the first row, `nil` where there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` where it is NULL and the type is not an optional.
    public func value<Column: ColumnReadable>(_ type: Column.Type = Column.self, _ sql: SQL) throws -> Column? {
        var result: Column?
        // The type is named, for what is inferred here is the optional, which takes NULL for a missing row.
        try withFirstRow(sql) { row in result = try row.get(Column.self, at: 0) }
        return result
    }

    /// Lends the first row of a query to `body`, where there is one.
    ///
    /// On its own because no type is generic here: where one is, Swift 6.3's optimizer cannot make a row.
    private func withFirstRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(of: statement)
            if try statement.step() { try body(row) }
        }
    }

    /// The rowid of the latest insert.
    ///
    /// The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// How many rows the latest statement changed.
    ///
    /// The corresponding C function is `sqlite3_changes`.
    public var changes: Int { Int(sqlite3_changes(handle)) }

    /// Lends a compiled statement with its values bound.
    ///
    /// - Parameter isKept: Whether the statement is likely to run again.
    package func withStatement<Result>(
        _ sql: SQL, isKept: Bool = true, _ body: (Statement) throws -> Result
    ) throws -> Result {
        try checkTransaction(sql.text)
        // A schema is asked about table by table, which would push all else out of the cache.
        let isKept = isKept && !sql.isPragma
        let statement = try (isKept ? cache.take(sql) : nil) ?? Statement(sql, on: self)
        defer {
            statement.reset()
            if isKept { cache.put(statement) }
        }
        try statement.bind(valuesOf: sql)
        return try body(statement)
    }
}
