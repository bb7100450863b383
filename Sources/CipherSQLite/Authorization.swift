internal import CSQLCipher

/// Something that a statement would do, as SQLite tells while it compiles it.
///
/// Source: SQLite, "Authorizer Action Codes".
package struct StatementAction: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// Makes, changes or removes a part of the schema.
        case definition
        case insert, update, delete
        case pragma
        case attach
        /// BEGIN, COMMIT or ROLLBACK.
        case transaction
        case savepoint
        case other
    }

    package let kind: Kind
    /// The table, the pragma, or the word of the transaction.
    package let subject: String
    /// The column of an update, or the argument of a pragma.
    package let detail: String?
    /// The trigger or view that does it; `nil` for the statement's own text.
    package let cause: String?

    fileprivate init(_ code: Int32, _ texts: [String?]) {
        kind =
            switch code {
            case SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW, SQLITE_DROP_INDEX...SQLITE_DROP_VIEW, SQLITE_ALTER_TABLE,
                SQLITE_CREATE_VTABLE, SQLITE_DROP_VTABLE:
                .definition
            case SQLITE_INSERT: .insert
            case SQLITE_UPDATE: .update
            case SQLITE_DELETE: .delete
            case SQLITE_PRAGMA: .pragma
            case SQLITE_ATTACH, SQLITE_DETACH: .attach
            case SQLITE_TRANSACTION: .transaction
            case SQLITE_SAVEPOINT: .savepoint
            default: .other
            }
        subject = texts[0] ?? ""
        detail = texts[1]
        cause = texts[3]
    }
}

extension Connection {
    /// Runs `body` while `isAllowed` judges what every statement that is compiled would do.
    ///
    /// Statements that were compiled before are compiled again. Not to be nested.
    ///
    /// The corresponding C function is `sqlite3_set_authorizer`.
    ///
    /// - Throws: What `body` throws; a statement that is not allowed fails with `SQLITE_AUTH`.
    package func judging<Result>(
        by isAllowed: @escaping (StatementAction) -> Bool, _ body: () throws -> Result
    ) throws -> Result {
        let judge = Judge(isAllowed)
        try check(
            sqlite3_set_authorizer(
                handle,
                { context, code, first, second, third, fourth in
                    guard let context else { return SQLITE_DENY }
                    let texts = [first, second, third, fourth].map { $0.map { String(cString: $0) } }
                    let judge = Unmanaged<Judge>.fromOpaque(context).takeUnretainedValue()
                    return judge.isAllowed(StatementAction(code, texts)) ? SQLITE_OK : SQLITE_DENY
                }, Unmanaged.passUnretained(judge).toOpaque()))
        // Removing it cannot fail on an open connection.
        defer { withExtendedLifetime(judge) { _ = sqlite3_set_authorizer(handle, nil, nil) } }
        return try body()
    }
}

private final class Judge {
    let isAllowed: (StatementAction) -> Bool

    init(_ isAllowed: @escaping (StatementAction) -> Bool) {
        self.isAllowed = isAllowed
    }
}
