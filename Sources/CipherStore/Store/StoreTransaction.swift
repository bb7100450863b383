internal import CipherErrors
internal import CipherSQLite

/// The transaction around the closure of a read or write.
package enum StoreTransaction: Sendable {
    case read
    /// A read on the writer's connection.
    case readOnWriter
    case write
    /// No transaction: each statement of the closure commits on its own, or the closure begins its own transactions.
    /// The connection is closed afterwards.
    case perStatement
    /// No transaction: the job is not a closure of the app, and begins its own.
    case outside

    /// Runs `body` in its transaction.
    ///
    /// - Throws: Any error thrown by `body`, ``StoreError`` with the code `misuse` if `body` ended the transaction, and
    ///   the reason for the cancellation if the job was canceled.
    func run<Output>(
        on connection: Connection, as job: ConnectionJob, _ body: (Connection) throws -> Output
    ) throws -> Output {
        connection.isCancelled = { job.isCancelled }
        defer { connection.isCancelled = { false } }
        do {
            switch self {
            case .outside: return try body(connection)
            case .perStatement: return try runEachByItself(on: connection, as: job, body)
            case .read, .readOnWriter, .write: break
            }
            if self == .readOnWriter { try connection.execute("PRAGMA query_only = ON") }
            if self == .write {
                try beginWriting(connection, job.store.events)
            } else {
                try connection.execute("BEGIN DEFERRED")
            }
        } catch let error as DatabaseError where error.isBusy && job.isCancelled {
            throw job.cancellation
        }
        let changes = job.store.changes
        // If this fails, the next write fails too, and nothing is lost.
        defer { if self == .readOnWriter { try? connection.execute("PRAGMA query_only = OFF") } }
        do {
            // If there was no observer when a write began, its commit is reported as a change of everything.
            if self == .write, changes.isObserved {
                try changes.look(connection)
                connection.recordWrites()
            }
            let output = try job.whileInterruptible(connection, body)
            // A commit is not canceled, however long it waits.
            connection.isCancelled = { false }
            guard connection.isInTransaction else { throw transactionEnded(connection) }
            // The writes are taken before the following statements, which would be recorded too.
            let writes = connection.takeWrites()
            try connection.checkAuthenticity()
            switch self {
            case .read, .readOnWriter, .outside, .perStatement: try connection.execute("ROLLBACK")
            case .write:
                try connection.checkSavepoints()
                try connection.execute("COMMIT")
                changes.committed(writes)
                connection.checkpointer?.didCommit()
            }
            return output
        } catch {
            _ = connection.takeWrites()
            // If the rollback fails, the worker closes the connection.
            connection.rollBack()
            throw error
        }
    }

    private func beginWriting(_ connection: Connection, _ events: EventLog) throws {
        guard events.tell != nil else { return try connection.execute("BEGIN IMMEDIATE") }
        try connection.measuringWaits { waited in
            if waited >= EventLog.noticeableWait { events(.waited(waited)) }
        } _: {
            try connection.execute("BEGIN IMMEDIATE")
        }
    }

    /// Runs a closure without a transaction, and rolls back a transaction that it left open.
    private func runEachByItself<Output>(
        on connection: Connection, as job: ConnectionJob, _ body: (Connection) throws -> Output
    ) throws -> Output {
        let outcome = Result { try job.whileInterruptible(connection, inTransaction: false, body) }
        let wasOpen = connection.isInTransaction
        // If the rollback fails, closing the connection rolls back.
        connection.rollBack()
        job.store.changes.committed(.everything)
        connection.checkpointer?.didCommit()
        let output = try outcome.get()
        guard !wasOpen else {
            throw StoreError(
                .misuse, path: connection.path,
                "the closure did not end its transaction, so the transaction was rolled back",
                advice: "commit the transaction, or use Connection.transaction")
        }
        return output
    }

    private func transactionEnded(_ connection: Connection) -> StoreError {
        StoreError(
            .misuse, path: connection.path,
            "SQLite rolled back the transaction, but the closure continued",
            advice: "rethrow database errors from the closure", changed: .nothing)
    }
}
