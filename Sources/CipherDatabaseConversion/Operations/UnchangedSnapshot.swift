internal import CipherErrors
internal import CipherSQLite

extension Connection {
    /// Runs `body` on a consistent snapshot of a file that other connections may write to.
    ///
    /// The open transaction has a second purpose: the builder's connection, which can write, is not the last one to
    /// close and therefore does not checkpoint the log.
    ///
    /// - Parameter moment: The time during which another connection may have written, for the error message.
    /// - Throws: Any error thrown by `body`, with SQLite's failures as ``StoreError``; ``StoreError`` with the code
    ///   `busy` if another connection wrote.
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
