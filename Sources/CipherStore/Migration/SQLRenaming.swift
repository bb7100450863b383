internal import CipherSQLite

/// Renaming in text that SQLite has accepted, token by token.
extension SQLTokens {
    private func replacing(_ new: String, where condition: (Int) -> Bool) -> String {
        var replacements: [Int: String] = [:]
        for index in tokens.indices where condition(index) { replacements[index] = SQL.quoted(identifier: new) }
        return replacing(replacements)
    }

    /// In a view, index or trigger: every name that is the table's.
    func renamingTable(_ old: SQLName, as new: String) -> String {
        let own = ownName
        return replacing(new) { index in
            tokens[index].isNamed(old) && index != own && !(index > 0 && tokens[index - 1].isKeyword("AS"))
        }
    }

    /// In a view, index or trigger: every name that is the column's.
    func renamingColumn(_ old: SQLName, as new: String) -> String {
        let own = ownName
        return replacing(new) { index in
            tokens[index].isNamed(old) && index != own && !isCall(index)
                && !(index > 0 && (tokens[index - 1].isKeyword("AS") || tokens[index - 1].isKeyword("COLLATE")))
        }
    }

    /// The place of the object's own name.
    private var ownName: Int? {
        guard let kind = tokens.firstIndex(where: { ["INDEX", "TRIGGER", "VIEW"].contains(where: $0.isKeyword) }) else {
            return nil
        }
        let next = kind + 1
        let skipsCondition = next < tokens.count && tokens[next].isKeyword("IF")
        return skipsCondition ? next + 3 : next
    }

    private func isCall(_ index: Int) -> Bool {
        tokens[index].kind == .word && index + 1 < tokens.count && tokens[index + 1].isKeyword("(")
    }

    /// The table that REFERENCES names before the parenthesis in which a token stands.
    fileprivate func referencedTable(around index: Int) -> SQLName? {
        var start = index
        while start > 0, !tokens[start].isKeyword("(") { start -= 1 }
        guard start >= 2, tokens[start - 2].isKeyword("REFERENCES") else { return nil }
        return SQLName(tokens[start - 1].content)
    }

    fileprivate func depth(at index: Int) -> Int {
        tokens[..<index].reduce(0) { $0 + ($1.isKeyword("(") ? 1 : $1.isKeyword(")") ? -1 : 0) }
    }

    fileprivate func renamingReferences(to old: SQLName, as new: String) -> String {
        replacing(new) { $0 > 0 && tokens[$0].isNamed(old) && tokens[$0 - 1].isKeyword("REFERENCES") }
    }

    fileprivate func renamingReferenced(_ old: SQLName, as new: String, of table: SQLName) -> String {
        replacing(new) { tokens[$0].isNamed(old) && referencedTable(around: $0) == table }
    }

    /// In a column or constraint of the table itself.
    fileprivate func renamingOwnColumn(_ old: SQLName, as new: String, of table: SQLName, isItem: Bool) -> String {
        replacing(new) { index in
            guard index > 0 else { return isItem }
            let parent = referencedTable(around: index)
            return tokens[index].isNamed(old) && depth(at: index) > 0 && !isCall(index)
                && (parent == nil || parent == table)
        }
    }
}

extension TableText.Item {
    func renamingReferences(to old: SQLName, as new: String) -> TableText.Item {
        TableText.Item(column: column, text: SQLTokens(text).renamingReferences(to: old, as: new))
    }

    func renamingReferenced(_ old: SQLName, as new: String, of table: SQLName) -> TableText.Item {
        TableText.Item(column: column, text: SQLTokens(text).renamingReferenced(old, as: new, of: table))
    }
}

extension TableText {
    func mapping(_ body: (Item) -> Item) -> TableText {
        var text = self
        text.items = items.map(body)
        return text
    }

    /// Renames a column of this table in its columns, constraints and references to itself.
    func renamingColumn(_ old: SQLName, as new: String, of table: SQLName) -> TableText {
        mapping { item in
            let isItem = item.column.map(SQLName.init) == old
            let text = SQLTokens(item.text).renamingOwnColumn(old, as: new, of: table, isItem: isItem)
            return Item(column: isItem ? new : item.column, text: text)
        }
    }
}
