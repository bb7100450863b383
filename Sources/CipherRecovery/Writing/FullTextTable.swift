internal import CipherSQLText

/// The parts of a full-text table's definition that specify where its text is stored.
///
/// Source: SQLite, "SQLite FTS5 Extension", section 4.4, and "SQLite FTS3 and FTS4 Extensions", section 6.2.
struct FullTextTable {
    /// The name of the module: `fts3`, `fts4` or `fts5`.
    let module: String
    /// The external table that stores the text; `nil` if the full-text table stores it itself.
    let contentTable: String?
    /// Whether the text is stored anywhere.
    ///
    /// The index of a contentless table cannot be recomputed.
    let hasContent: Bool

    /// The name endings of the tables that the module computes from the text, if the full-text table has such tables.
    var computed: [String] {
        module == "fts5" ? ["data", "idx", "docsize"] : ["segments", "segdir", "docsize", "stat"]
    }

    /// Whether the module stores statistics and one of its settings in the same table.
    var hasStatistics: Bool { computed.contains("stat") }

    private let tokens: SQLTokens

    /// Returns the same definition for a table with another name.
    func definition(named name: String) -> String? {
        // The first four tokens are CREATE VIRTUAL TABLE and the name.
        guard tokens.tokens.count > 4, tokens.tokens[3].isName, tokens.tokens[4].isKeyword("using") else { return nil }
        return tokens.replacing([3: name])
    }

    /// Reads a full-text table's definition; returns `nil` for a table of another module.
    init?(_ entry: SchemaText) {
        let text = SQLTokens(entry.text)
        let tokens = text.tokens
        guard let using = tokens.firstIndex(where: { $0.isKeyword("using") }), using + 1 < tokens.count,
            let module = ["fts3", "fts4", "fts5"].first(where: { tokens[using + 1].isKeyword($0) })
        else { return nil }
        self.module = module
        self.tokens = text
        var content: String?
        for place in tokens.indices.dropLast(2)
        where place > using && tokens[place].isKeyword("content") && tokens[place + 1].content == "=" {
            let value = tokens[place + 2]
            content = value.kind == .literal ? String(value.content.dropFirst().dropLast()) : value.content
        }
        contentTable = content.flatMap { $0.isEmpty ? nil : $0 }
        hasContent = content != ""
    }
}
