internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite

/// Checks that the SQL of each schema entry matches its type.
///
/// SQLite parses only an entry's SQL and trusts its other columns: old engines treat a view as a table if its entry has
/// a b-tree, and reading that table would run the view. SQLite itself always writes the first words of the SQL in the
/// same way, but accepts any white space and comments between them.
///
/// Source: SQLite, "The Schema Table".
package enum SchemaEntryCheck {
    /// Checks the entries.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt`, naming the first entry that does not match.
    package static func check(_ connection: Connection) throws {
        // Entries in the form in which SQLite writes them are not parsed, because there may be thousands of them. The
        // query calls no functions, not even LIKE's, because an app may have replaced them.
        try connection.forEachRow(
            """
            SELECT type, rootpage IS NOT NULL AND rootpage > 0, CAST(sql AS TEXT), name FROM main.sqlite_master
            WHERE CASE type
                WHEN 'table' THEN CASE WHEN rootpage > 0 THEN sql >= 'CREATE TABLE ' AND sql < 'CREATE TABLE!'
                    ELSE sql >= 'CREATE VIRTUAL TABLE ' AND sql < 'CREATE VIRTUAL TABLE!' END
                WHEN 'index' THEN rootpage > 0 AND (sql IS NULL OR sql = '' OR sql >= 'CREATE INDEX ' AND sql < 'CREATE INDEX!'
                    OR sql >= 'CREATE UNIQUE INDEX ' AND sql < 'CREATE UNIQUE INDEX!')
                WHEN 'view' THEN (rootpage IS NULL OR rootpage <= 0) AND sql >= 'CREATE VIEW ' AND sql < 'CREATE VIEW!'
                WHEN 'trigger' THEN (rootpage IS NULL OR rootpage <= 0)
                    AND sql >= 'CREATE TRIGGER ' AND sql < 'CREATE TRIGGER!'
                END IS NOT 1
            """
        ) { row in
            let sql = try row.get(String?.self, at: 2)
            if let sql, isShape(of: sql, try row.get(at: 0), hasRoot: try row.get(at: 1)) { return }
            let name = try row.get(String?.self, at: 3)
            throw StoreError.damaged(
                connection.path, "the type of schema entry \(name ?? "without a name") does not match its SQL")
        }
    }

    /// Returns whether an entry's SQL creates an object of the entry's type.
    package static func isShape(of sql: String, _ type: String?, hasRoot: Bool) -> Bool {
        let words = SQLTokens(sql, first: 3).tokens
        func begins(_ keywords: String...) -> Bool {
            words.count >= keywords.count && zip(words, keywords).allSatisfy { $0.isKeyword($1) }
        }
        return switch type {
        case "table": hasRoot ? begins("create", "table") : begins("create", "virtual", "table")
        case "index": hasRoot && (begins("create", "index") || begins("create", "unique", "index"))
        case "view": !hasRoot && begins("create", "view")
        case "trigger": !hasRoot && begins("create", "trigger")
        default: false
        }
    }
}
