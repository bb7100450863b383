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
