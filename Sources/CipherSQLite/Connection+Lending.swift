internal import CCipherEngine
internal import CipherErrors

/// What holds for a connection while a closure of an app has it.
///
/// The closure gets the connection for one transaction on one thread. Nothing that it runs may outlast the transaction, and
/// a name that it misspells is an error.
extension Connection {
    /// Runs `body`, an app's closure, with the connection lent to it.
    ///
    /// Meanwhile statements run only inside of the transaction that is open, and a name in double quotes is never taken for
    /// a string, except that engines before SQLite 3.29 do so in definitions. On a connection with
    /// ``refuseWhatOutlastsLoans()``, statements that would outlast the transaction are refused. From here on the connection
    /// belongs to the calling thread, until ``takeBack()``.
    ///
    /// - Throws: What `body` throws, and ``DatabaseError`` with `SQLITE_MISUSE` where it closed the connection.
    package func lend<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        claim()
        let before = (isLent, requiresTransaction)
        (isLent, requiresTransaction) = (true, true)
        let acceptsStrings = acceptsStringsInDefinitions
        if acceptsStrings { allowDoubleQuotedStrings(inDefinitions: false) }
        defer {
            (isLent, requiresTransaction) = before
            if !isLent { wasClosedInLoan = false }
            if acceptsStrings { allowDoubleQuotedStrings() }
        }
        let result = try body(self)
        guard !wasClosedInLoan else {
            throw misuse("a closure closed the connection that was only lent to it: take the call of close() out")
        }
        return result
    }

    /// Throws where the work was cancelled for which the connection was lent.
    ///
    /// For closures that work long between two statements: a running statement ends by itself, and `Task.isCancelled` tells
    /// nothing inside of a closure, which runs outside of the task. Where nothing can be cancelled, as in the hooks and steps
    /// of an opening, it never throws.
    ///
    /// - Throws: `CancellationError`; ``DatabaseError`` with `SQLITE_MISUSE` outside of the closure.
    public func checkCancellation() throws {
        try checkThread()
        if isCancelled() { throw CancellationError() }
    }

    // MARK: Threads

    /// Makes the connection the calling thread's alone.
    package func claim() {
        cs_store(holder, cs_this_thread())
    }

    /// Makes the connection nobody's, until it is claimed again.
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
        throw misuse("the connection was closed, or lent to a closure that has ended or runs on another thread")
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
                "nothing can be registered on a connection that is lent: it would outlast the closure, on this connection "
                    + "alone")
        }
        guard !name.isEmpty, !name.utf8.contains(0), name.utf8.count <= limit else {
            throw misuse(
                "a name that is registered has no NUL character and at least one byte"
                    + (limit < .max ? ", and at most \(limit)" : ""))
        }
    }

    /// The same, and refuses what would run outside of a transaction that is required.
    func checkUse(_ sql: @autoclosure () -> String) throws {
        try checkThread()
        guard requiresTransaction, !isInTransaction else { return }
        throw DatabaseError(
            extendedCode: DatabaseError.rolledBack, message: "the transaction has ended, so nothing more may run in it",
            sql: sql(), path: path)
    }

    // MARK: Statements

    /// Has SQLite refuse, while the connection is lent, what would outlast the transaction, before it runs.
    ///
    /// Those are the transaction's own statements, ATTACH, temporary tables, views and triggers, which would go on hiding
    /// and changing what the names of others mean, and pragmas that set more than the transaction undoes. They are refused
    /// when they are compiled, because SQLCipher runs some of its pragmas then, and `PRAGMA rekey` encrypts the whole file
    /// again.
    ///
    /// Not for a connection on which statements are judged otherwise: SQLite asks one judge.
    ///
    /// The corresponding C function is `sqlite3_set_authorizer`.
    package func refuseWhatOutlastsLoans() throws {
        try check(
            sqlite3_set_authorizer(
                handle,
                { context, code, first, second, third, _ in
                    // SQLite tells of the database, whether it is named or TEMP is said. Its own name for that one is ASCII,
                    // and no other database can have it.
                    let isTemporary =
                        (SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW ~= code || code == SQLITE_CREATE_VTABLE)
                        && third.map { String(cString: $0) } == "temp"
                    guard
                        isTemporary || code == SQLITE_PRAGMA || code == SQLITE_TRANSACTION || code == SQLITE_ATTACH
                            || code == SQLITE_DETACH
                    else { return SQLITE_OK }
                    guard let context else { return SQLITE_DENY }
                    let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                    guard connection.isLent else { return SQLITE_OK }
                    // Compared with ASCII names alone, and shown: where it is no Unicode it is none of them.
                    let subject = first.map { String(cString: $0) } ?? ""
                    connection.refusal = Connection.refusal(of: code, subject, hasValue: second != nil)
                    return connection.refusal == nil ? SQLITE_OK : SQLITE_DENY
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    /// Why a lent connection does not run a statement; never with a pragma's value, which may be a key.
    private static func refusal(of code: Int32, _ subject: String, hasValue: Bool) -> String? {
        switch code {
        case SQLITE_TRANSACTION:
            return "\(subject) may not run here: the transaction begins and ends without it"
        case SQLITE_PRAGMA:
            guard !isAllowed(pragma: subject.lowercased(), hasValue: hasValue) else { return nil }
            return
                "PRAGMA \(subject) may not run here\(hasValue ? " with a value" : ""): it would outlast the transaction"
        case SQLITE_ATTACH, SQLITE_DETACH:
            return "ATTACH and DETACH may not run here: they would outlast the transaction"
        default:
            return
                "CREATE TEMP may not run here: it would outlast the transaction; use WITH, or a table of the database"
        }
    }

    private static func isAllowed(pragma name: String, hasValue: Bool) -> Bool {
        // SQLCipher's own, of which some act without a value.
        if name.hasPrefix("cipher_") || name.hasSuffix("kdf_iter") || name.hasSuffix("key") {
            return !hasValue && readingCipherPragmas.contains(name)
        }
        return !hasValue || pragmasOfTransaction.contains(name)
    }

    private static let readingCipherPragmas: Set = [
        "cipher_version", "cipher_provider", "cipher_provider_version", "cipher_fips_status", "cipher_settings",
        "cipher_integrity_check",
    ]

    /// Pragmas whose value says what to read, or that the transaction undoes or ends with.
    private static let pragmasOfTransaction: Set = [
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "integrity_check",
        "quick_check", "foreign_key_list", "foreign_key_check", "defer_foreign_keys", "user_version", "application_id",
        "incremental_vacuum", "optimize",
    ]
}

extension Connection {
    /// What SQLite says against a statement in which no name in double quotes may be a string; `nil` where it takes it.
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
