internal import CCipherEngine

extension Connection {
    /// Gives `body` the handle by which C knows the connection, for what this library does not wrap.
    ///
    /// The handle is for functions of the SQLCipher library that this one uses, on this thread, and until `body` returns.
    /// What may not be done with it, because it cannot be undone:
    /// - Close it, or leave a statement, a blob or a backup unfinished on it.
    /// - End or begin a transaction. If one was lent it is still open afterwards, or everything is rolled back.
    /// - Change the key or the cipher format.
    /// - Change what has the library's place: the authorizer, the busy, progress, commit, rollback, update and write-ahead
    ///   log hooks. They are set again afterwards, those of `body` end.
    /// - Register what keeps hold of something that ends before the connection.
    ///
    /// It is unknown what is read and written, so observers are notified that anything may have changed.
    ///
    /// - Throws: What `body` throws; ``DatabaseError`` with `SQLITE_MISUSE` if it ended the transaction that the
    ///   connection was lent for, inside another such `body`, and for a connection that is closed or was lent to a
    ///   closure that has ended.
    public func withRawHandle<Result>(_ body: (OpaquePointer) throws -> Result) throws -> Result {
        try checkUse("")
        guard !isRawHandleLent else {
            throw misuse("the connection's handle is in use by an outer closure: use that one")
        }
        isRawHandleLent = true
        defer { isRawHandleLent = false }
        let watch = requiresTransaction ? TransactionWatch(handle) : nil
        let outcome = Swift.Result { try body(handle) }
        let hasEnded = watch?.end(handle) == true || requiresTransaction && !isInTransaction
        try takeHooksBack()
        valueStatements = [:]
        latestRecorded = nil
        reads?.isEverything = true
        writes?.isEverything = true
        guard !hasEnded else {
            let message = "the transaction was ended through the raw handle; remove that statement; nothing was changed"
            // Whatever the closure makes of the error.
            if isLent { misuseInLoan = message }
            throw misuse(message)
        }
        return try outcome.get()
    }

    /// Puts in place what C may have replaced.
    private func takeHooksBack() throws {
        sqlite3_extended_result_codes(handle, 1)
        refusal = nil
        waitForLocks()
        setProgressHandler(progressHandler)
        checkpointer?.takeHook()
        _ = sqlite3_update_hook(handle, nil, nil)
        _ = sqlite3_commit_hook(handle, nil, nil)
        _ = sqlite3_rollback_hook(handle, nil, nil)
        try setAuthorizer(authorizer)
    }
}

/// Notices the end of a transaction, and keeps it from being a commit.
private final class TransactionWatch {
    private var hasEnded = false

    init(_ handle: OpaquePointer) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = sqlite3_commit_hook(
            handle,
            { context in
                TransactionWatch.note(context)
                // Rolls back.
                return 1
            }, context)
        _ = sqlite3_rollback_hook(handle, { TransactionWatch.note($0) }, context)
    }

    private static func note(_ context: UnsafeMutableRawPointer?) {
        guard let context else { return }
        Unmanaged<TransactionWatch>.fromOpaque(context).takeUnretainedValue().hasEnded = true
    }

    /// Notices no more, and returns whether the transaction ended.
    func end(_ handle: OpaquePointer) -> Bool {
        _ = sqlite3_commit_hook(handle, nil, nil)
        _ = sqlite3_rollback_hook(handle, nil, nil)
        return hasEnded
    }
}
