internal import CipherSQLText
internal import CipherSQLite

/// What SQLite tells of a statement.
struct StatementTraits {
    /// Whether it makes, changes or removes a part of the schema.
    var isDefinition = false
    /// Whether it is a setting that decides what later definitions may do.
    var setsRenaming = false
    /// The tables that it writes, and the columns that it updates.
    var inserts: Set<SQLName> = []
    var deletes: Set<SQLName> = []
    var updates: [SQLName: Set<SQLName>] = [:]

    var writesRows: Bool { !isDefinition && !(inserts.isEmpty && deletes.isEmpty && updates.isEmpty) }
    var tables: Set<SQLName> { inserts.union(deletes).union(updates.keys) }

    /// Takes note of something that the statement would do.
    mutating func note(_ action: StatementAction) {
        if action.isDefinition { isDefinition = true }
        if action.kind == .pragma, SQLName(action.subject) == SQLName("legacy_alter_table") {
            setsRenaming = true
        }
        let table = SQLName(action.subject)
        // Of SQLite's own tables the one that a statement may write by name.
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
