internal import CipherSQLText
internal import CipherSQLite

/// The sort columns of an index, and the condition of a partial index, in SQL.
struct WrittenIndex {
    let list: [SQL]
    let condition: SQL?

    init(list: [SQL], condition: SQL?) {
        self.list = list
        self.condition = condition
    }

    /// Reads the definition; `nil` if it is not text, or does not have the form of CREATE INDEX.
    init?(_ index: SchemaName, _ connection: Connection) throws {
        var text: String?
        try connection.forEachRow("SELECT name, sql FROM main.sqlite_master WHERE type = 'index' AND sql <> ''") {
            if try $0.get(SchemaName.self, at: 0) == index { text = try $0.get(at: 1) }
        }
        guard let text else { return nil }
        let definition = SQLTokens(text)
        let tokens = definition.tokens
        guard let open = tokens.firstIndex(where: { $0.isKeyword("(") }),
            let close = definition.closing(open), close > open + 1
        else { return nil }
        let commas = (open + 1..<close).filter {
            tokens[$0].isKeyword(",") && definition.depth(at: $0) == 1
        }
        list = zip([open] + commas, commas + [close]).map { start, end in
            let isOrder = ["ASC", "DESC"].contains(where: tokens[end - 1].isKeyword)
            let last = end - (isOrder ? 2 : 1)
            return SQL(text: definition.text(from: start + 1, through: last))
        }
        guard close + 1 < tokens.count else {
            condition = nil
            return
        }
        guard tokens[close + 1].isKeyword("WHERE"), close + 2 < tokens.count else { return nil }
        condition = SQL(text: "(\(definition.text(from: close + 2, through: tokens.count - 1)))")
    }
}

extension SQLTokens {
    /// Returns the text from one token to another, including the characters between the tokens.
    ///
    /// Invalid UTF-8 is replaced. The text is only used in a query that counts rows; if the query fails, the count is
    /// unknown.
    fileprivate func text(from first: Int, through last: Int) -> String {
        guard first <= last else { return "" }
        return String(decoding: bytes[tokens[first].range.lowerBound..<tokens[last].range.upperBound], as: UTF8.self)
    }
}
