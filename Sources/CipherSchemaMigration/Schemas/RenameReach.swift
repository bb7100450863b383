package import CipherSQLite

/// How far a rename reaches.
struct RenameReach {
    /// Whether it reaches columns, views, triggers and other tables.
    let isCarried: Bool

    // Such a rename fails where any view or trigger of the database cannot be compiled, be it another's and broken for
    // long. Then the engine renames as engines did before, which look at nothing but the table.
    init(_ state: DatabaseState) throws {
        isCarried =
            try Engine.current.canRenameColumns && !state.lacksTables
            && DanglingObjects(in: state.connection, state).isEmpty
    }

    func statements(from old: String, to new: String) -> [String] {
        let rename = "ALTER TABLE \(SQL.quoted(identifier: old)) RENAME TO \(SQL.quoted(identifier: new))"
        return isCarried ? [rename] : Engine.current.renamingAlone(rename)
    }
}

extension Engine {
    /// RENAME COLUMN came with SQLite 3.25, and with it renames that reach views, triggers and other tables.
    ///
    /// From 3.26 on the latter does not depend on `foreign_keys`.
    package var canRenameColumns: Bool { sqliteVersionNumber >= 3_026_000 }

    /// Has a statement rename a table and nothing else; views, triggers and foreign keys are then not even looked at.
    func renamingAlone(_ rename: String) -> [String] {
        canRenameColumns ? ["PRAGMA legacy_alter_table = ON", rename, "PRAGMA legacy_alter_table = OFF"] : [rename]
    }
}
