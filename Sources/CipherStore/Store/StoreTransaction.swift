internal import CipherErrors
internal import CipherSQLite

/// The transaction around the closure of a read or write.
package enum StoreTransaction: Sendable {
    case read
    case write
    /// None: what runs is no closure of an app's, and begins its own.
    case outside

    /// Runs `body` in its transaction.
    ///
    /// - Throws: What `body` throws, ``StoreError`` with `misuse` where it ended the transaction, `CancellationError`.
    func run<Output>(
        on connection: Connection, as job: ConnectionJob, _ body: (Connection) throws -> Output
    ) throws -> Output {
        connection.isCancelled = { job.isCancelled }
        defer { connection.isCancelled = { false } }
        do {
            guard self != .outside else { return try body(connection) }
            try connection.execute(self == .read ? "BEGIN DEFERRED" : "BEGIN IMMEDIATE")
        } catch let error as DatabaseError where error.isBusy && job.isCancelled {
            throw CancellationError()
        }
        let changes = job.store.changes
        do {
            // Of a commit that nobody was to be told of when it began, everything is told.
            if self == .write, changes.isObserved {
                try changes.look(connection)
                connection.recordWrites()
            }
            let output = try job.whileInterruptible(connection, body)
            // A commit is not cancelled, however long it waits.
            connection.isCancelled = { false }
            guard connection.isInTransaction else { throw transactionEnded(connection) }
            switch self {
            case .read, .outside: try connection.execute("ROLLBACK")
            case .write:
                // Before, for COMMIT itself would count.
                let writes = connection.takeWrites()
                try connection.execute("COMMIT")
                changes.committed(writes)
                connection.checkpointer?.didCommit()
            }
            return output
        } catch {
            _ = connection.takeWrites()
            // SQLite may have rolled back by itself. Where it cannot, the worker closes the connection.
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            throw error
        }
    }

    private func transactionEnded(_ connection: Connection) -> StoreError {
        StoreError(
            .misuse, path: connection.path,
            "SQLite rolled the transaction back before its closure ended, and the closure went on",
            advice: "let errors of the database through", changed: .nothing)
    }
}
