internal import CCipherEngine

extension Connection {
    /// How a transaction takes its lock.
    ///
    /// Source: SQLite, "Transaction".
    public enum TransactionKind: String, Sendable {
        /// Locks at the first read or write.
        case deferred = "DEFERRED"
        /// Takes the write lock at once.
        case immediate = "IMMEDIATE"
        /// Takes the write lock at once and keeps readers out too, except in WAL mode.
        case exclusive = "EXCLUSIVE"
    }

    /// Whether a transaction is open.
    ///
    /// The corresponding C function is `sqlite3_get_autocommit`.
    public var isInTransaction: Bool { isUsable && sqlite3_get_autocommit(handle) == 0 }

    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// Inside of a transaction it is a savepoint.
    ///
    /// - Throws: ``DatabaseError``, or what `body` throws.
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
            // SQLite may have rolled back by itself, for instance on a full disk.
            if isInTransaction { try execute("ROLLBACK") }
            throw error
        }
    }

    /// Begins a transaction that sees what is committed now, whatever others commit later.
    ///
    /// In WAL mode these others continue writing; in any other they wait until it ends.
    package func pinSnapshot() throws {
        try execute("BEGIN DEFERRED")
        // The transaction begins with the first read.
        try proveReadable()
    }

    /// Runs `body` in a savepoint: kept when it returns, undone when it throws.
    ///
    /// - Throws: ``DatabaseError``, or what `body` throws.
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
                // The schema is that of before, too.
                valueStatements = [:]
            }
            throw error
        }
    }
}
