internal import CipherErrors
internal import CipherSQLite

extension Connection {
    /// Runs `body` over one state of a file that others may write.
    ///
    /// The open transaction does one thing more: the builder's connection, which can write, is not the last one at its
    /// end, and so does not checkpoint the log.
    ///
    /// - Parameter moment: When another connection may have written, for the error.
    /// - Throws: What `body` throws, SQLite's failures with a type; ``StoreError`` with `busy` if another connection
    ///   wrote.
    func whileUnchanged<Output>(
        _ paths: DatabasePaths, _ moment: String, _ body: () throws -> Output
    ) throws -> Output {
        let before = try value(Int.self, "PRAGMA data_version")
        try pinSnapshot()
        let result = Result { try body() }
        try execute("COMMIT")
        guard try value(Int.self, "PRAGMA data_version") == before else {
            throw StoreError.busy(
                paths.database, "another connection wrote to the database \(moment)", retry: .now)
        }
        do {
            return try result.get()
        } catch let error as DatabaseError {
            throw Inspector(paths).readFailure(error, during: .conversion)
        }
    }
}
