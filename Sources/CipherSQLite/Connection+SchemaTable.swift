/// What SQLite knows of a schema, and the rows that it read it from.
///
/// Source: SQLite, "The Schema Table".
extension Connection {
    /// Runs `make` a number of times, each of which may make an object of a schema.
    ///
    /// SQLite reads the whole schema table after each CREATE. It needs the rows no more once it has read them, so where
    /// these are taken away now and then, the time is proportional to the number of objects.
    ///
    /// - Parameters:
    ///   - make: Is given the number, from 0.
    ///   - takeRows: Takes the rows away. Until they are back, nothing may make SQLite read them anew that needs what was
    ///     made, as a rollback does.
    package func makeObjects(_ count: Int, _ make: (Int) throws -> Void, takeRows: () throws -> Void) throws {
        for number in 0..<count {
            try make(number)
            if (number + 1) % 200 == 0 || number == count - 1 { try takeRows() }
        }
    }

    /// Makes SQLite read the schema of one file anew.
    ///
    /// After each CREATE SQLite also looks at every table that it knows of the schema. Engines that cannot forget one
    /// schema alone continue knowing it, which costs them time.
    package func forgetSchema(_ schema: String) throws {
        let name = SQL.quoted(identifier: schema)
        let version = try value(Int.self, SQL(text: "PRAGMA \(name).schema_version")) ?? 0
        try execute(SQL(text: "PRAGMA \(name).schema_version = \(version + 1)"))
    }

    /// Makes SQLite read the schemas of all files anew, whose rows were written as rows.
    ///
    /// SQLite forgets them when a change of any schema is rolled back, also to a savepoint.
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
