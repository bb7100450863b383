import CipherSQLite

/// The transaction around the closure of a read or write.
enum StoreTransaction: Sendable {
    case read
    case write

    /// Runs `body` in its transaction.
    ///
    /// - Throws: What `body` throws, ``StoreError`` with `misuse` where it ended the transaction, `CancellationError`.
    func run<Output>(
        on connection: Connection, as job: ConnectionJob, _ body: (Connection) throws -> Output
    ) throws -> Output {
        switch self {
        case .read: try connection.execute("BEGIN DEFERRED")
        case .write: try connection.execute("BEGIN IMMEDIATE")
        }
        do {
            let output = try job.whileInterruptible(connection, body)
            guard connection.isInTransaction else { throw transactionEnded(connection) }
            switch self {
            // Nothing of a reader may stay, not even where its closure got round `query_only`.
            case .read: try connection.execute("ROLLBACK")
            case .write: try connection.execute("COMMIT")
            }
            return output
        } catch {
            // SQLite may have rolled back by itself. Where it cannot, the worker closes the connection.
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            throw error
        }
    }

    private func transactionEnded(_ connection: Connection) -> StoreError {
        StoreError(
            .misuse, path: connection.path,
            "the transaction ended before its closure did: the closure ended it, or went on after SQLite rolled it back",
            advice: "leave BEGIN, COMMIT and ROLLBACK to the store, and let errors of the database through")
    }
}
