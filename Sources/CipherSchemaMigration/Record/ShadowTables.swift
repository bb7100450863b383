internal import CipherSQLText

/// Tells the tables in which virtual tables keep their content.
///
/// By module and ending, the same on every engine: which endings a module uses SQLite knows only where it is loaded.
struct ShadowTables {
    private var virtual: [(prefix: String, endings: Set<String>?)] = []

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

    /// Whether a statement makes a virtual table.
    static func isVirtual(_ sql: String) -> Bool {
        SQLTokens(sql, first: 2).tokens.dropFirst().first?.isKeyword("virtual") == true
    }

    /// Whether a table is one of them; of a module that is not known, every table with its prefix is.
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
