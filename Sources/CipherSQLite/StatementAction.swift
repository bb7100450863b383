internal import CCipherEngine

/// An action that a statement would perform, as SQLite reports it during compilation.
///
/// Source: SQLite, "Authorizer Action Codes".
package struct StatementAction: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case createTable, alterTable, dropTable
        /// Creates or removes another part of the schema.
        case definition
        case read, insert, update, delete
        case pragma
        case attach
        /// BEGIN, COMMIT or ROLLBACK.
        case transaction
        case savepoint
        case other
    }

    package let kind: Kind
    /// The table, the pragma, or the transaction's keyword.
    package let subject: String
    /// The column that is read, updated or dropped, or the argument of a pragma.
    package let detail: String?
    /// The database of the connection, such as `main` or `temp`.
    package let schema: String?
    /// The trigger or view that performs the action; `nil` for the statement's own text.
    package let cause: String?

    init(_ code: Int32, _ texts: [String?]) {
        kind =
            switch code {
            case SQLITE_CREATE_TABLE, SQLITE_CREATE_TEMP_TABLE, SQLITE_CREATE_VTABLE: .createTable
            case SQLITE_DROP_TABLE, SQLITE_DROP_TEMP_TABLE, SQLITE_DROP_VTABLE: .dropTable
            case SQLITE_ALTER_TABLE: .alterTable
            case SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW, SQLITE_DROP_INDEX...SQLITE_DROP_VIEW: .definition
            case SQLITE_READ: .read
            case SQLITE_INSERT: .insert
            case SQLITE_UPDATE: .update
            case SQLITE_DELETE: .delete
            case SQLITE_PRAGMA: .pragma
            case SQLITE_ATTACH, SQLITE_DETACH: .attach
            case SQLITE_TRANSACTION: .transaction
            case SQLITE_SAVEPOINT: .savepoint
            default: .other
            }
        // For ALTER TABLE, the database comes first.
        let isAlteration = code == SQLITE_ALTER_TABLE
        subject = (isAlteration ? texts[1] : texts[0]) ?? ""
        detail = isAlteration ? texts[2] : texts[1]
        schema = isAlteration ? texts[0] : texts[2]
        cause = texts[3]
    }

    /// Whether the action creates, changes or removes a part of the schema.
    package var isDefinition: Bool {
        switch kind {
        case .createTable, .alterTable, .dropTable, .definition: true
        default: false
        }
    }
}
