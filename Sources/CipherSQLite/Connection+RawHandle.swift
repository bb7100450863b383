internal import CCipherEngine

extension Connection {
    /// Lends the connection's C handle to `body`, for functions that this library does not wrap.
    ///
    /// Use the handle only with functions of the SQLCipher library that this library uses, on this thread, and until
    /// `body` returns. Do not use it for the following actions, which cannot be undone:
    /// - Closing it, or leaving a statement, a blob or a backup unfinished on it.
    /// - Ending or beginning a transaction. If the connection was lent with one, that transaction must still be open
    ///   afterwards; otherwise everything is rolled back.
    /// - Changing the key or the cipher format.
    /// - Replacing the library's own callbacks: the authorizer, and the busy, progress, commit, rollback, update and
    ///   write-ahead log hooks. The library sets them again afterwards, and those of `body` are removed.
    /// - Registering anything that refers to something with a shorter lifetime than the connection.
    ///
    /// The library does not know what is read and written, so observers are notified that anything may have changed.
    ///
    /// - Throws: Any error thrown by `body`; ``DatabaseError`` with `SQLITE_MISUSE` if `body` ended the transaction for
    ///   which the connection was lent, inside another such `body`, and for a connection that is closed or was lent to
    ///   a closure that has ended.
    public func withRawHandle<Result>(_ body: (OpaquePointer) throws -> Result) throws -> Result {
        try checkUse("")
        guard !isRawHandleLent else {
            throw misuse(
                "an outer closure is already using the connection's raw handle: use the handle passed to that closure")
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
            let message =
                "a statement that was run through the raw handle ended the transaction, and nothing was changed: remove "
                + "that statement"
            // The closure fails with this error even if it handles the error that is thrown here.
            if isLent { misuseInLoan = message }
            throw misuse(message)
        }
        return try outcome.get()
    }

    /// Restores the callbacks that C code may have replaced.
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

/// Detects the end of a transaction, and prevents a commit.
private final class TransactionWatch {
    private var hasEnded = false

    init(_ handle: OpaquePointer) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = sqlite3_commit_hook(
            handle,
            { context in
                TransactionWatch.note(context)
                // A result other than 0 turns the commit into a rollback.
                return 1
            }, context)
        _ = sqlite3_rollback_hook(handle, { TransactionWatch.note($0) }, context)
    }

    private static func note(_ context: UnsafeMutableRawPointer?) {
        guard let context else { return }
        Unmanaged<TransactionWatch>.fromOpaque(context).takeUnretainedValue().hasEnded = true
    }

    /// Stops watching, and returns whether the transaction ended.
    func end(_ handle: OpaquePointer) -> Bool {
        _ = sqlite3_commit_hook(handle, nil, nil)
        _ = sqlite3_rollback_hook(handle, nil, nil)
        return hasEnded
    }
}
