import CipherSQLite

extension Connection {
    /// Bounds what the schema and the values of a file may cost whoever reads it.
    ///
    /// - Parameter path: The database, whose log counts too.
    func distrust(_ path: String) throws {
        distrust(fileSize: try Self.size(path))
    }

    /// Runs `body` and ends it where it takes more steps than any number of walks through the rows of an honest file.
    ///
    /// - Throws: What `body` throws, and `DatabaseError` with `SQLITE_CORRUPT` where it was ended.
    func withinStepsForRows<Result>(_ body: () throws -> Result) throws -> Result {
        try withinSteps(Int(try Self.size(path)) * Self.stepsForByte + 20_000_000, body)
    }

    /// A row of three bytes may have 2,000 columns that were added later.
    static let stepsForByte = 400

    private static func size(_ path: String) throws -> Int64 {
        try (FileSystem.size(path) ?? 0) + (FileSystem.size(path + "-wal") ?? 0)
    }
}
