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
    /// - Throws: ``DatabaseError``, or any error thrown by `body`.
    public func transaction<Result>(
        _ kind: TransactionKind = .immediate, _ body: () throws -> Result
    ) throws -> Result {
        guard !isInTransaction else { return try savepoint(body) }
        try execute(SQL(text: "BEGIN \(kind.rawValue)"))
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // SQLite may already have rolled back, for example if the disk is full.
            if isInTransaction { try execute("ROLLBACK") }
            throw error
        }
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
    /// - Throws: ``DatabaseError``, or any error thrown by `body`.
    public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        try checkThread()
        savepointDepth += 1
        defer { savepointDepth -= 1 }
        let name = "cipherstore_\(savepointDepth)"
        try execute(SQL(text: "SAVEPOINT \(name)"))
        do {
            let result = try body()
            try execute(SQL(text: "RELEASE \(name)"))
            return result
        } catch {
            if isInTransaction {
                try execute(SQL(text: "ROLLBACK TO \(name)"))
                try execute(SQL(text: "RELEASE \(name)"))
                // The schema has been rolled back, too.
                valueStatements = [:]
            }
            throw error
        }
    }
}
