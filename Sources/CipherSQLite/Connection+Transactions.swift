internal import CCipherEngine

extension Connection {
    /// The way in which a transaction takes its lock.
    ///
    /// Source: SQLite, "Transaction".
    public enum TransactionKind: String, Sendable {
        /// Locks at the first read or write.
        case deferred = "DEFERRED"
        /// Takes the write lock at once.
        case immediate = "IMMEDIATE"
        /// Takes the write lock at once and excludes readers, too, except in WAL mode.
        case exclusive = "EXCLUSIVE"
    }

    /// Whether a transaction is open.
    ///
    /// The corresponding C function is `sqlite3_get_autocommit`.
    public var isInTransaction: Bool { isUsable && sqlite3_get_autocommit(handle) == 0 }

    /// Runs `body` in a transaction, which is committed if `body` returns and rolled back if it throws.
    ///
    /// Inside another transaction, it runs in a savepoint.
    ///
    /// - Throws: ``DatabaseError``, or any error thrown by `body`, even if the rollback fails too; the transaction then
    ///   stays open.
    public func transaction<Result>(
        _ kind: TransactionKind = .immediate, _ body: () throws -> Result
    ) throws -> Result {
        guard !isInTransaction else { return try savepoint(body) }
        failedRollback = nil
        try execute(SQL(text: "BEGIN \(kind.rawValue)"))
        do {
            let result = try body()
            try checkSavepoints()
            try execute("COMMIT")
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    /// Rolls back the transaction, if SQLite has not already done so, for example because the disk is full.
    ///
    /// A rollback that fails leaves the transaction open. Its error is not thrown, because it would hide the reason for
    /// the rollback: if a statement that a virtual table keeps was interrupted, for example, every later statement of
    /// the transaction is interrupted too.
    package func rollBack() {
        if isInTransaction { try? execute("ROLLBACK") }
        if !isInTransaction { failedRollback = nil }
    }

    /// Throws the error of a savepoint's rollback if it failed, because the transaction then contains changes that were
    /// to be undone.
    package func checkSavepoints() throws {
        if let failedRollback { throw failedRollback }
    }

    /// Begins a transaction that sees the current committed state, whatever other connections commit later.
    ///
    /// In WAL mode other connections continue to write; in any other mode they wait until the transaction ends.
    package func pinSnapshot() throws {
        try execute("BEGIN DEFERRED")
        // The transaction begins with the first read.
        try proveReadable()
    }

    /// Runs `body` in a savepoint, which is released if `body` returns and rolled back if it throws.
    ///
    /// - Throws: ``DatabaseError``, or any error thrown by `body`, even if the rollback fails too; the transaction can
    ///   then no longer be committed.
    public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        try checkThread()
        if !isInTransaction { failedRollback = nil }
        savepointDepth += 1
        defer { savepointDepth -= 1 }
        let name = "cipherstore_\(savepointDepth)"
        try execute(SQL(text: "SAVEPOINT \(name)"))
        do {
            let result = try body()
            try checkSavepoints()
            try execute(SQL(text: "RELEASE \(name)"))
            return result
        } catch {
            if isInTransaction {
                do {
                    try execute(SQL(text: "ROLLBACK TO \(name)"))
                    try execute(SQL(text: "RELEASE \(name)"))
                } catch {
                    failedRollback = failedRollback ?? error
                }
                // The schema has been rolled back, too.
                valueStatements = [:]
            }
            throw error
        }
    }
}
