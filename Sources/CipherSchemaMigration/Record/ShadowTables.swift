internal import CipherSQLText

/// Identifies the tables in which virtual tables store their data (shadow tables).
///
/// They are identified by module and suffix, so that the result is the same on every engine: SQLite knows which
/// suffixes a module uses only if the module is loaded.
struct ShadowTables {
    private var virtual: [(prefix: String, endings: Set<String>?)] = []

    /// Creates a set of the shadow tables of a schema.
    ///
    /// - Parameter tables: The names and statements of all tables.
    init(tables: some Sequence<(name: String, sql: String)>) {
        for table in tables where Self.isVirtual(table.sql) {
            let tokens = SQLTokens(table.sql).tokens
            guard let using = tokens.firstIndex(where: { $0.isKeyword("using") }), using + 1 < tokens.endIndex else {
                continue
            }
            let module = SQLName(tokens[using + 1].content).text
            virtual.append((table.name + "_", Self.endings[module]))
        }
    }

    /// Returns whether a statement creates a virtual table.
    static func isVirtual(_ sql: String) -> Bool {
        SQLTokens(sql, first: 2).tokens.dropFirst().first?.isKeyword("virtual") == true
    }

    /// Returns whether a table is a shadow table; for an unknown module, every table with the virtual table's prefix is
    /// one.
    func contains(_ table: String) -> Bool {
        let name = SQLName(table)
        return virtual.contains { prefix, endings in
            guard name.hasPrefix(prefix) else { return false }
            return endings?.contains(String(decoding: name.folded.dropFirst(prefix.utf8.count), as: UTF8.self)) ?? true
        }
    }

    private static let endings: [String: Set<String>] = [
        "fts3": ["content", "segments", "segdir", "docsize", "stat"],
        "fts4": ["content", "segments", "segdir", "docsize", "stat"],
        "fts5": ["data", "idx", "content", "docsize", "config"],
        "rtree": ["node", "rowid", "parent"],
        "rtree_i32": ["node", "rowid", "parent"],
        "geopoly": ["node", "rowid", "parent"],
    ]
}
