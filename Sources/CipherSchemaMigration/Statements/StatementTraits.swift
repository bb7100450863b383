internal import CipherSQLText
internal import CipherSQLite

/// The properties of a statement that SQLite reports.
struct StatementTraits {
    /// Whether the statement creates, changes or removes a part of the schema.
    var isDefinition = false
    /// Whether the statement is a setting that affects later definitions.
    var setsRenaming = false
    /// The tables that the statement writes, and the columns that it updates.
    var inserts: Set<SQLName> = []
    var deletes: Set<SQLName> = []
    var updates: [SQLName: Set<SQLName>] = [:]

    var writesRows: Bool { !isDefinition && !(inserts.isEmpty && deletes.isEmpty && updates.isEmpty) }
    var tables: Set<SQLName> { inserts.union(deletes).union(updates.keys) }

    /// Records an action that the statement would perform.
    mutating func note(_ action: StatementAction) {
        if action.isDefinition { isDefinition = true }
        if action.kind == .pragma, SQLName(action.subject) == SQLName("legacy_alter_table") {
            setsRenaming = true
        }
        let table = SQLName(action.subject)
        // sqlite_sequence is the only one of SQLite's own tables that a statement may write by name.
        let isOwn = table.isOfSQLite && table != SQLName("sqlite_sequence")
        guard action.cause == nil, !isOwn else { return }
        switch action.kind {
        case .insert: inserts.insert(table)
        case .delete: deletes.insert(table)
        case .update: updates[table, default: []].insert(SQLName(action.detail ?? ""))
        default: break
        }
    }
}
