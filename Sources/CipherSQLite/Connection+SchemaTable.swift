/// SQLite's representation of a schema, and the rows from which SQLite read it.
///
/// Source: SQLite, "The Schema Table".
extension Connection {
    /// Runs `make` a number of times; each run may create an object in a schema.
    ///
    /// SQLite reads the whole schema table after each CREATE. It does not need the rows after it has read them, so if
    /// the rows are removed at intervals, the total time is proportional to the number of objects.
    ///
    /// - Parameters:
    ///   - make: Creates an object; called with the number of the run, from 0.
    ///   - takeRows: Removes the rows. Until they are restored, nothing that needs the new objects may make SQLite read
    ///     the rows again, as a rollback does.
    package func makeObjects(_ count: Int, _ make: (Int) throws -> Void, takeRows: () throws -> Void) throws {
        for number in 0..<count {
            try make(number)
            if (number + 1) % 200 == 0 || number == count - 1 { try takeRows() }
        }
    }

    /// Does the same as ``makeObjects(_:_:takeRows:)`` in the connection's own file, and restores the rows at the end.
    ///
    /// The caller has begun a transaction, which must be rolled back if this fails.
    ///
    /// - Parameter forgetting: Whether each object can be created while SQLite does not know the others.
    package func makeObjects(_ count: Int, forgetting: Bool, _ make: (Int) throws -> Void) throws {
        try execute("CREATE TEMP TABLE cipherstore_held (type, name, tbl_name, rootpage, sql)")
        let latest = try value(Int64.self, "SELECT coalesce(max(rowid), 0) FROM main.sqlite_master") ?? 0
        // If SQLite does not know sqlite_sequence, it creates a second one.
        let isTaken: SQL = "rowid > \(forgetting ? latest : 0) AND name <> 'sqlite_sequence'"
        try makeObjects(count, make) {
            try execute("INSERT INTO temp.cipherstore_held SELECT * FROM main.sqlite_master WHERE \(isTaken)")
            try writingSchema { try execute("DELETE FROM main.sqlite_master WHERE \(isTaken)") }
            if forgetting { try forgetSchema("main") }
        }
        try writingSchema {
            try execute("INSERT INTO main.sqlite_master SELECT * FROM temp.cipherstore_held ORDER BY rowid")
        }
        if forgetting { try forgetSchema("main") }
        try execute("DROP TABLE temp.cipherstore_held")
    }

    /// Allows `body` to write the schema table.
    package func writingSchema(_ body: () throws -> Void) throws {
        try execute("PRAGMA writable_schema = ON")
        try body()
        try execute("PRAGMA writable_schema = OFF")
    }

    /// Makes SQLite read the schema of one file again.
    ///
    /// After each CREATE, SQLite also examines every table that it knows in the schema. Engines that cannot forget a
    /// single schema retain it, which costs time.
    package func forgetSchema(_ schema: String) throws {
        let name = SQL.quoted(identifier: schema)
        let version = try value(Int.self, SQL(text: "PRAGMA \(name).schema_version")) ?? 0
        try execute(SQL(text: "PRAGMA \(name).schema_version = \(version + 1)"))
    }

    /// Makes SQLite read the schemas of all files again, after rows of a schema table were written directly.
    ///
    /// SQLite discards all schemas if a change of any schema is rolled back, even to a savepoint.
    package func forgetSchemas() throws {
        guard isInTransaction else {
            try execute("BEGIN")
            try execute("CREATE TEMP TABLE cipherstore_forgotten(a)")
            return try execute("ROLLBACK")
        }
        try execute("SAVEPOINT cipherstore_forgetting")
        try execute("CREATE TEMP TABLE cipherstore_forgotten(a)")
        try execute("ROLLBACK TO cipherstore_forgetting")
        try execute("RELEASE cipherstore_forgetting")
    }
}
