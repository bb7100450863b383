internal import CipherErrors
internal import CipherSQLite

/// The transaction around the closure of a read or write.
package enum StoreTransaction: Sendable {
    case read
    /// Of the connection that writes too.
    case readOnWriter
    case write
    /// None: each statement of the closure commits by itself, or the closure begins its own. The connection is closed after it.
    case perStatement
    /// None: what runs is no closure of an app's, and begins its own.
    case outside

    /// Runs `body` in its transaction.
    ///
    /// - Throws: What `body` throws, ``StoreError`` with `misuse` if it ended the transaction, and why the job was
    ///   cancelled.
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
        // Where that fails, so does the next write, and loses nothing.
        defer { if self == .readOnWriter { try? connection.execute("PRAGMA query_only = OFF") } }
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
            case .read, .readOnWriter, .outside, .perStatement: try connection.execute("ROLLBACK")
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

    private func beginWriting(_ connection: Connection, _ events: EventLog) throws {
        guard events.tell != nil else { return try connection.execute("BEGIN IMMEDIATE") }
        try connection.measuringWaits { waited in
            if waited >= EventLog.noticeableWait { events(.waited(waited)) }
        } _: {
            try connection.execute("BEGIN IMMEDIATE")
        }
    }

    /// Runs a closure that has no transaction, and ends one that it left open.
    private func runEachByItself<Output>(
        on connection: Connection, as job: ConnectionJob, _ body: (Connection) throws -> Output
    ) throws -> Output {
        let outcome = Result { try job.whileInterruptible(connection, inTransaction: false, body) }
        let wasOpen = connection.isInTransaction
        // Where it cannot be rolled back, that happens as the connection is closed.
        if wasOpen { try? connection.execute("ROLLBACK") }
        job.store.changes.committed(.everything)
        connection.checkpointer?.didCommit()
        let output = try outcome.get()
        guard !wasOpen else {
            throw StoreError(
                .misuse, path: connection.path, "the closure left a transaction open, which was rolled back",
                advice: "commit it, or use Connection.transaction")
        }
        return output
    }

    private func transactionEnded(_ connection: Connection) -> StoreError {
        StoreError(
            .misuse, path: connection.path,
            "SQLite rolled the transaction back, but its closure continued",
            advice: "let the closure rethrow database errors", changed: .nothing)
    }
}
