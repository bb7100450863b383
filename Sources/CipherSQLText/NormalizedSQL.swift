internal import CipherSQLite

/// SQL text without its formatting, so that texts with the same meaning in SQLite become equal.
///
/// White space and comments are removed, words and names are in lower case, and names are quoted only if necessary.
/// Strings do not change. Text in double quotes is treated as a name, except in a DEFAULT clause, which cannot contain
/// a name, so that SQLite treats it as a string.
package struct NormalizedSQL {
    /// The pieces in normal form.
    private(set) var pieces: [String] = []

    /// The normal form, on one line.
    package var text: String { pieces.joined(separator: " ") }

    package init(_ sql: String) {
        self.init(SQLTokens(sql).tokens)
    }

    package init(_ tokens: some Sequence<SQLToken>) {
        var clause = DefaultClause()
        for token in tokens {
            let isValue = clause.contains(token)
            let content = token.content
            let folded = SQLName(content).text
            switch token.kind {
            case .literal: pieces.append(content.hasPrefix("'") ? content : content.uppercased())
            case .number, .symbol: pieces.append(folded)
            case .quotedName: pieces.append(isValue ? SQL.quoted(text: content) : Self.name(content))
            case .word:
                // `DEFAULT word` is the string 'word', unless the word is one of these.
                let isString =
                    isValue && clause.isBare && !Self.literals.contains(folded) && !Self.reserved.contains(folded)
                pieces.append(isString ? SQL.quoted(text: content) : folded)
            }
        }
    }

    /// Returns a quoted name, without the quotes if the name does not need them.
    private static func name(_ text: String) -> String {
        let folded = SQLName(text).text
        let isWord = SQLTokens(folded).tokens.map(\.kind) == [.word] && SQLTokens(folded).tokens[0].content == folded
        return isWord && !reserved.contains(folded) && !literals.contains(folded)
            ? folded : SQL.quoted(identifier: folded)
    }

    private static let literals: Set<String> = [
        "null", "true", "false", "current_date", "current_time", "current_timestamp",
    ]

    /// The keywords that can never be a name without quotes.
    ///
    /// Source: SQLite, "SQLite Keywords", without those that its grammar also accepts as names.
    static let reserved: Set<String> = [
        "add", "all", "alter", "and", "as", "autoincrement", "between", "case", "check", "collate", "commit",
        "constraint", "create", "default", "deferrable", "delete", "distinct", "drop", "else", "escape", "except",
        "exists", "foreign", "from", "group", "having", "in", "index", "insert", "intersect", "into", "is", "isnull",
        "join", "limit", "not", "nothing", "notnull", "on", "or", "order", "primary", "references", "returning",
        "select", "set", "table", "then", "to", "transaction", "union", "unique", "update", "using", "values", "when",
        "where",
    ]

    /// Tracks which pieces belong to a DEFAULT clause: one piece, or all pieces in one pair of parentheses.
    private struct DefaultClause {
        private var isExpected = false
        private var depth = 0
        private var isBehindSet = false
        /// Whether the clause's value is without parentheses.
        private(set) var isBare = false

        mutating func contains(_ token: SQLToken) -> Bool {
            defer { isBehindSet = token.isKeyword("set") }
            isBare = false
            if depth > 0 {
                if token.isKeyword("(") { depth += 1 }
                if token.isKeyword(")") { depth -= 1 }
                return true
            }
            if isExpected {
                // A sign comes before the number.
                guard !token.isKeyword("+"), !token.isKeyword("-") else { return true }
                isExpected = false
                if token.isKeyword("(") { depth = 1 } else { isBare = true }
                return true
            }
            // `ON DELETE SET DEFAULT` has no value.
            isExpected = token.isKeyword("default") && !isBehindSet
            return false
        }
    }
}
