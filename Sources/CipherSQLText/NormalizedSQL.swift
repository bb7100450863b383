internal import CipherSQLite

/// SQL text without its formatting: two texts that SQLite reads alike become one.
///
/// White space and comments go, words and names are in lower case, and names are quoted only where they must be.
/// Strings stay to the letter. A text in double quotes is taken for a name, except in a DEFAULT clause, where no name
/// can stand and SQLite takes it for a string.
package struct NormalizedSQL {
    /// The pieces, each as it is written in the normal form.
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
                // `DEFAULT word` is the string 'word', unless it is one of these.
                let isString =
                    isValue && clause.isBare && !Self.literals.contains(folded) && !Self.reserved.contains(folded)
                pieces.append(isString ? SQL.quoted(text: content) : folded)
            }
        }
    }

    /// A name that came in quotes; they go where it can do without.
    private static func name(_ text: String) -> String {
        let folded = SQLName(text).text
        let isWord = SQLTokens(folded).tokens.map(\.kind) == [.word] && SQLTokens(folded).tokens[0].content == folded
        return isWord && !reserved.contains(folded) && !literals.contains(folded)
            ? folded : SQL.quoted(identifier: folded)
    }

    private static let literals: Set<String> = [
        "null", "true", "false", "current_date", "current_time", "current_timestamp",
    ]

    /// The keywords that can never stand for a name without quotes.
    ///
    /// Source: SQLite, "SQLite Keywords", without those that its grammar falls back on as names.
    private static let reserved: Set<String> = [
        "add", "all", "alter", "and", "as", "autoincrement", "between", "case", "check", "collate", "commit",
        "constraint", "create", "default", "deferrable", "delete", "distinct", "drop", "else", "escape", "except",
        "exists", "foreign", "from", "group", "having", "in", "index", "insert", "intersect", "into", "is", "isnull",
        "join", "limit", "not", "nothing", "notnull", "on", "or", "order", "primary", "references", "returning",
        "select", "set", "table", "then", "to", "transaction", "union", "unique", "update", "using", "values", "when",
        "where",
    ]

    /// Follows the text to know what belongs to a DEFAULT clause: one piece, or everything in one pair of parentheses.
    private struct DefaultClause {
        private var isExpected = false
        private var depth = 0
        private var isBehindSet = false
        /// Whether the clause's value stands there without parentheses.
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
                // A sign stands before the number.
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
