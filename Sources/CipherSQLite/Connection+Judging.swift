internal import CCipherEngine

extension Connection {
    /// Runs `body` while `isAllowed` decides on every action of the statements that are compiled.
    ///
    /// Calls must not be nested.
    ///
    /// The corresponding C function is `sqlite3_set_authorizer`.
    ///
    /// - Parameter compiled: Called with a statement's text after it is compiled and before it runs. `isAllowed` also
    ///   decides on the statements that this closure runs itself.
    /// - Throws: Any error thrown by `body`; a statement that is not allowed fails with `SQLITE_AUTH`.
    package func judging<Result>(
        by isAllowed: @escaping (StatementAction) -> Bool, compiled: (([UInt8]) throws -> Void)? = nil,
        _ body: () throws -> Result
    ) throws -> Result {
        let judge = Judge(isAllowed)
        // The caches are emptied, so that each statement of `body` is compiled while it is judged.
        cache.removeAll()
        lentCache.removeAll()
        tellsOfSchemaChanges = false
        hasCompiled = compiled
        defer { hasCompiled = nil }
        try setAuthorizer(
            Authorizer(
                callback: { context, code, first, second, third, fourth in
                    guard let context else { return SQLITE_DENY }
                    let texts = [first, second, third, fourth].map { $0.map { String(cString: $0) } }
                    let judge = Unmanaged<Judge>.fromOpaque(context).takeUnretainedValue()
                    return judge.isAllowed(StatementAction(code, texts)) ? SQLITE_OK : SQLITE_DENY
                }, context: Unmanaged.passUnretained(judge).toOpaque()))
        // Removing it cannot fail on an open connection.
        defer { withExtendedLifetime(judge) { try? setAuthorizer(nil) } }
        return try body()
    }
}

private final class Judge {
    let isAllowed: (StatementAction) -> Bool

    init(_ isAllowed: @escaping (StatementAction) -> Bool) {
        self.isAllowed = isAllowed
    }
}
