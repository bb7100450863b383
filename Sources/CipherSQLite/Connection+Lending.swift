internal import CCipherEngine
internal import CipherErrors

/// What holds for a connection while a closure of an app has it.
///
/// The closure gets the connection for one transaction on one thread. Nothing that it runs may outlast the transaction, and
/// a name that it misspells is an error.
extension Connection {
    /// Runs `body`, an app's closure, with the connection lent to it.
    ///
    /// Meanwhile statements run only inside the transaction that is open, where one is required, and a name in double
    /// quotes is never taken for a string, except that engines before SQLite 3.29 do so in definitions. On a connection
    /// with ``refuseWhatOutlastsLoans()``, statements that would outlast the transaction are refused. From here on the
    /// connection belongs to the calling thread, until ``takeBack()``.
    ///
    /// - Parameter inTransaction: `false` if statements commit one by one, and the connection is closed after the loan:
    ///   only what would outlast the connection is refused then, and what the promises of a commit rest on.
    /// - Throws: What `body` throws, and ``DatabaseError`` with `SQLITE_MISUSE` if it closed the connection, or ended
    ///   the transaction by the connection's handle.
    package func lend<Result>(
        inTransaction: Bool = true, _ body: (Connection) throws -> Result
    ) throws -> Result {
        claim()
        let before = (isLent, requiresTransaction)
        (isLent, requiresTransaction) = (true, inTransaction)
        // Others may have changed the schema.
        valueStatements = [:]
        let acceptsStrings = acceptsStringsInDefinitions
        if acceptsStrings { allowDoubleQuotedStrings(inDefinitions: false) }
        defer {
            (isLent, requiresTransaction) = before
            if !isLent { misuseInLoan = nil }
            if acceptsStrings { allowDoubleQuotedStrings() }
        }
        let result = try body(self)
        if let misuseInLoan { throw misuse(misuseInLoan) }
        return result
    }

    /// Throws where the work was cancelled for which the connection was lent.
    ///
    /// For closures that work long between two statements: a running statement ends by itself, and `Task.isCancelled`
    /// tells nothing inside a closure, which runs outside the task. If nothing can be cancelled, as in the hooks and
    /// steps of an opening, it never throws.
    ///
    /// - Throws: `CancellationError`; ``DatabaseError`` with `SQLITE_MISUSE` outside the closure.
    public func checkCancellation() throws {
        try checkThread()
        if isCancelled() { throw CancellationError() }
    }

    // MARK: Threads

    /// Makes the connection the calling thread's alone.
    package func claim() {
        cs_store(holder, cs_this_thread())
    }

    /// Makes the connection no one's, until it is claimed again.
    package func takeBack() {
        cs_store(holder, Self.nobody)
    }

    static let anyone: UInt = 0
    /// No thread's number, which is an address.
    static let nobody: UInt = 1

    /// Whether the calling thread may use the connection.
    var isUsable: Bool {
        let holder = cs_load(holder)
        return holder == Self.anyone || holder == cs_this_thread()
    }

    /// Refuses a thread that may not use the connection.
    func checkThread() throws {
        guard !isUsable else { return }
        throw misuse("the connection was closed, or it belongs to a closure that has ended or runs on another thread")
    }

    func misuse(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: DatabaseError.misuse, message: message, path: path)
    }

    /// Refuses to register what would outlast a loan, and a name that SQLite would cut.
    ///
    /// - Parameter limit: The greatest length of the name, in bytes of UTF-8.
    func checkRegistration(of name: String, limit: Int = .max) throws {
        try checkThread()
        guard !isLent else {
            throw misuse(
                "nothing can be registered on a connection inside a closure: it would outlast the closure, on this connection "
                    + "alone")
        }
        guard !name.isEmpty, !name.utf8.contains(0), name.utf8.count <= limit else {
            throw misuse(
                "a registered name must have at least one byte and no NUL character"
                    + (limit < .max ? ", and at most \(limit)" : ""))
        }
    }

    /// The same, and refuses what would run outside a transaction that is required.
    func checkUse(_ sql: @autoclosure () -> String) throws {
        try checkThread()
        guard requiresTransaction, !isInTransaction else { return }
        throw DatabaseError(
            extendedCode: DatabaseError.rolledBack, message: "the transaction has ended, so nothing more may run in it",
            sql: sql(), path: path)
    }
}

extension Connection {
    /// What SQLite says against a statement in which no name in double quotes may be a string; `nil` if it takes it.
    ///
    /// The statement compiles where that is allowed.
    package func complaint(aboutNamesIn sql: SQL) throws -> String? {
        do {
            try lend { _ = try Statement(sql, on: $0) }
            return nil
        } catch let error as DatabaseError {
            return error.message
        }
    }
}
