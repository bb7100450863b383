internal import CCipherEngine
internal import CipherErrors

/// The rules for a connection while it is lent to an app's closure.
///
/// The closure gets the connection for one transaction on one thread. No effect of its statements may outlast the
/// transaction, and a misspelled name is an error.
extension Connection {
    /// Runs `body`, an app's closure, with the connection lent to it.
    ///
    /// While `body` runs, statements run only inside the open transaction, if one is required, and a name in double
    /// quotes is never treated as a string, except in definitions on engines before SQLite 3.29. On a connection with
    /// ``refuseWhatOutlastsLoans()``, statements that would outlast the transaction are refused. From the start of this
    /// call, the connection belongs to the calling thread, until ``takeBack()``.
    ///
    /// - Parameter inTransaction: Whether `body` runs in a transaction. If not, statements commit one by one and the
    ///   connection is closed after the loan, so only statements that would outlast the connection or weaken the
    ///   guarantees of a commit are refused.
    /// - Throws: Any error thrown by `body`, and ``DatabaseError`` with `SQLITE_MISUSE` if it closed the connection, or
    ///   ended the transaction through the raw handle.
    package func lend<Result>(
        inTransaction: Bool = true, _ body: (Connection) throws -> Result
    ) throws -> Result {
        claim()
        let before = (isLent, requiresTransaction)
        (isLent, requiresTransaction) = (true, inTransaction)
        // Other connections may have changed the schema.
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

    /// Throws if the work for which the connection was lent was canceled.
    ///
    /// Call this method in closures that work for a long time between two statements. A running statement is stopped
    /// anyway, and `Task.isCancelled` is of no use inside a closure, which runs outside the task. If the work cannot be
    /// canceled, as in the hooks and steps of an opening, the method never throws.
    ///
    /// - Throws: `CancellationError` if the work was canceled; ``DatabaseError`` with `SQLITE_MISUSE` outside the
    ///   closure.
    public func checkCancellation() throws {
        try checkThread()
        if isCancelled() { throw CancellationError() }
    }

    // MARK: Threads

    /// Reserves the connection for the calling thread.
    package func claim() {
        cs_store(holder, cs_this_thread())
    }

    /// Makes the connection unusable for all threads until it is claimed again.
    package func takeBack() {
        cs_store(holder, Self.nobody)
    }

    static let anyone: UInt = 0
    /// A number that no thread has, because a thread's number is an address.
    static let nobody: UInt = 1

    /// Whether the calling thread may use the connection.
    var isUsable: Bool {
        let holder = cs_load(holder)
        return holder == Self.anyone || holder == cs_this_thread()
    }

    /// Throws if the calling thread may not use the connection.
    func checkThread() throws {
        guard !isUsable else { return }
        throw misuse(
            "the connection was closed, was used on a different thread, or was used after the closure that received it "
                + "had returned"
        )
    }

    func misuse(_ message: String) -> DatabaseError {
        DatabaseError(extendedCode: DatabaseError.misuse, message: message, path: path)
    }

    /// Throws if a registration would outlast a loan, or if SQLite would truncate the name.
    ///
    /// - Parameter limit: The maximum length of the name, in UTF-8 bytes.
    func checkRegistration(of name: String, limit: Int = .max) throws {
        try checkThread()
        guard !isLent else {
            throw misuse(
                "a closure cannot register a function, collation or tokenizer on its connection: the registration "
                    + "would remain after the closure returns, and other connections would not have it")
        }
        guard !name.isEmpty, !name.utf8.contains(0), name.utf8.count <= limit else {
            throw misuse(
                "the name of a function, collation or tokenizer must not be empty or contain a NUL character"
                    + (limit < .max ? ", and must be at most \(limit) bytes long" : ""))
        }
    }

    /// Throws if the calling thread may not use the connection, or if a statement would run outside a required
    /// transaction.
    func checkUse(_ sql: @autoclosure () -> String) throws {
        try checkThread()
        guard requiresTransaction, !isInTransaction else { return }
        throw DatabaseError(
            extendedCode: DatabaseError.rolledBack,
            message: "the transaction has ended, so no further statement can run in it", sql: sql(), path: path)
    }
}

extension Connection {
    /// Returns SQLite's error message for a statement in which no name in double quotes may be a string; `nil` if
    /// SQLite accepts it.
    ///
    /// The statement must compile if such strings are allowed.
    package func complaint(aboutNamesIn sql: SQL) throws -> String? {
        do {
            try lend { _ = try Statement(sql, on: $0) }
            return nil
        } catch let error as DatabaseError {
            return error.message
        }
    }
}
