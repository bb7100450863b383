package import CipherSQLite

/// The objects that a rename affects.
struct RenameReach {
    /// Whether a rename also updates columns, views, triggers and other tables.
    let isCarried: Bool

    // Such a rename fails if any view or trigger of the database cannot be compiled, even an unrelated one that was
    // broken before. In that case the engine renames as older engines do, which only look at the table.
    init(_ state: DatabaseState) throws {
        isCarried =
            try Engine.current.canRenameColumns && !state.lacksTables
            && DanglingObjects(in: state.connection, state).isEmpty
    }

    static func statement(from old: String, to new: String) -> String {
        "ALTER TABLE \(SQL.quoted(identifier: old)) RENAME TO \(SQL.quoted(identifier: new))"
    }

    func statements(from old: String, to new: String) -> [String] {
        let rename = Self.statement(from: old, to: new)
        return isCarried ? [rename] : Engine.current.renamingAlone(rename)
    }
}

extension Engine {
    /// Whether the engine can rename columns: SQLite 3.25 added RENAME COLUMN, and with it renames that update views,
    /// triggers and other tables.
    ///
    /// Since 3.26, updating other tables does not depend on `foreign_keys`.
    package var canRenameColumns: Bool { sqliteVersionNumber >= 3_026_000 }

    /// Returns statements that rename only a table; views, triggers and foreign keys are then not even parsed.
    func renamingAlone(_ rename: String) -> [String] {
        canRenameColumns ? ["PRAGMA legacy_alter_table = ON", rename, "PRAGMA legacy_alter_table = OFF"] : [rename]
    }
}
