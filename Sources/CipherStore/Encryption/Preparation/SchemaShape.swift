import CipherSQLite

/// Whether each entry of a schema is what it says it is.
///
/// SQLite goes by an entry's text alone and believes the rest: old engines take a view for a table where its entry has a
/// b-tree, and reading that table would run the view. SQLite itself writes the first words of each text in one way.
/// Source: SQLite, "The Schema Table".
enum SchemaShape {
    /// Checks the entries.
    ///
    /// - Throws: ``StoreError`` with `corrupt`, naming the first entry that is something else.
    static func check(_ connection: Connection) throws {
        let name = try connection.value(
            String?.self,
            """
            SELECT name FROM main.sqlite_master
            WHERE NOT ifnull(
                CASE type
                WHEN 'table' THEN sql LIKE CASE WHEN rootpage > 0 THEN 'CREATE TABLE%' ELSE 'CREATE VIRTUAL TABLE%' END
                WHEN 'index' THEN rootpage > 0
                    AND (sql IS NULL OR sql LIKE 'CREATE INDEX%' OR sql LIKE 'CREATE UNIQUE INDEX%')
                WHEN 'view' THEN ifnull(rootpage, 0) <= 0 AND sql LIKE 'CREATE VIEW%'
                WHEN 'trigger' THEN ifnull(rootpage, 0) <= 0 AND sql LIKE 'CREATE TRIGGER%'
                END, 0)
            LIMIT 1
            """)
        guard let name else { return }
        throw StoreError(
            .corrupt, path: connection.path,
            "the schema's entry \(name ?? "without a name") is not what it says it is",
            advice: "restore the file from a backup; nothing was changed")
    }
}
