package import CipherSQLText
internal import CipherSQLite

/// Renaming in SQL text that SQLite has accepted, token by token.
extension SQLTokens {
    private func replacing(_ new: String, where condition: (Int) -> Bool) -> String {
        var replacements: [Int: String] = [:]
        for index in tokens.indices where condition(index) { replacements[index] = SQL.quoted(identifier: new) }
        return replacing(replacements)
    }

    /// The meaning of a name in a view, index or trigger, by its position.
    private enum Use { case table, column, either }

    private func use(of index: Int) -> Use {
        func token(_ place: Int, is words: String...) -> Bool {
            tokens.indices.contains(place) && words.contains(where: tokens[place].isKeyword)
        }
        if token(index + 1, is: ".") { return .table }
        if token(index - 1, is: ".") { return token(index - 2, is: "main", "temp") ? .table : .column }
        let isOperand = token(index - 1, is: "FROM") && token(index - 2, is: "DISTINCT")
        if token(index - 1, is: "FROM", "JOIN", "INTO", "UPDATE"), !isOperand { return .table }
        if token(index - 2, is: "OR"), token(index - 3, is: "UPDATE") { return .table }
        // The first ON of a trigger or an index; any other ON begins a condition.
        let isIndex = tokens.prefix(4).contains { $0.isKeyword("INDEX") }
        let isTrigger = tokens.prefix(4).contains { $0.isKeyword("TRIGGER") }
        if isIndex || isTrigger, tokens.firstIndex(where: { $0.isKeyword("ON") }) == index - 1 { return .table }
        if isIndex || token(index - 1, is: "OF") { return .column }
        return .either
    }

    /// Renames every occurrence of a table's name in a view, index or trigger.
    ///
    /// - Parameter isColumn: Whether a column has the same name; a name that can be either is then left unchanged.
    package func renamingTable(_ old: SQLName, as new: String, isColumn: Bool) -> String {
        let own = ownName
        return replacing(new) { index in
            guard tokens[index].isNamed(old), index != own else { return false }
            switch use(of: index) {
            case .table: return true
            case .column: return false
            case .either: return !isColumn && !(index > 0 && tokens[index - 1].isKeyword("AS"))
            }
        }
    }

    /// Returns whether a name occurs in a place where it can be a table's or a column's.
    package func isUnclear(_ name: SQLName) -> Bool {
        let own = ownName
        return tokens.indices.contains { tokens[$0].isNamed(name) && $0 != own && use(of: $0) == .either }
    }

    /// Renames every occurrence of a column's name in a view, index or trigger.
    func renamingColumn(_ old: SQLName, as new: String) -> String {
        let own = ownName
        return replacing(new) { index in
            tokens[index].isNamed(old) && index != own && !isOtherName(index)
        }
    }

    /// Returns whether a view or trigger contains a name in double quotes that is a string if no column has this name.
    func mayBeString(_ name: SQLName) -> Bool {
        let own = ownName
        return tokens.indices.contains { index in
            tokens[index].isNamed(name) && bytes[tokens[index].range.lowerBound] == UInt8(ascii: "\"") && index != own
                && use(of: index) == .either
        }
    }

    /// The index of the object's own name.
    private var ownName: Int? {
        guard let kind = tokens.firstIndex(where: { ["INDEX", "TRIGGER", "VIEW"].contains(where: $0.isKeyword) }) else {
            return nil
        }
        let next = kind + 1
        let skipsCondition = next < tokens.count && tokens[next].isKeyword("IF")
        return skipsCondition ? next + 3 : next
    }

    private func isCall(_ index: Int) -> Bool {
        index + 1 < tokens.count && tokens[index + 1].isKeyword("(")
    }

    /// Returns whether a token is a keyword, or the name of a function, an alias, the type of a CAST, or a collation.
    func isOtherName(_ index: Int) -> Bool {
        isCall(index) || index > 0 && ["AS", "COLLATE"].contains(where: tokens[index - 1].isKeyword)
            || tokens[index].kind == .word && followsOperand(index)
    }

    /// Returns whether an operand ends before a word.
    ///
    /// The word is then not a name, but a keyword such as DESC, END or LIKE, which SQLite accepts as names elsewhere.
    func followsOperand(_ index: Int) -> Bool {
        var start = index
        while start > 0, tokens[start - 1].kind != .symbol { start -= 1 }
        var isOperand = start > 0 && tokens[start - 1].content == ")"
        for token in tokens[start..<index] {
            func isKeyword(_ words: String...) -> Bool { words.contains(where: token.isKeyword) }
            if token.kind != .word {
                isOperand = true
            } else if isOperand {
                isOperand = isKeyword("ASC", "DESC", "END", "ISNULL", "NOTNULL")
            } else {
                isOperand = !token.isReserved && !isKeyword("BY", "OF", "LIKE", "GLOB", "MATCH", "REGEXP")
            }
        }
        return isOperand
    }

    /// Returns the table that REFERENCES names before the parenthesis that contains a token.
    fileprivate func referencedTable(around index: Int) -> SQLName? {
        var start = index
        while start > 0, !tokens[start].isKeyword("(") { start -= 1 }
        guard start >= 2, tokens[start - 2].isKeyword("REFERENCES") else { return nil }
        return SQLName(tokens[start - 1].content)
    }

    fileprivate func renamingReferences(to old: SQLName, as new: String) -> String {
        replacing(new) { $0 > 0 && tokens[$0].isNamed(old) && tokens[$0 - 1].isKeyword("REFERENCES") }
    }

    /// Makes a foreign key in the text reference another table.
    ///
    /// - Parameters:
    ///   - child: The column whose foreign key is changed; `nil` if the whole text belongs to this column.
    ///   - old: The only referenced table that is replaced; `nil` to replace any.
    fileprivate func leading(_ child: SQLName?, from old: SQLName?, to parent: String) -> String {
        replacing(parent) { index in
            guard index > 0, tokens[index - 1].isKeyword("REFERENCES"), old.map(tokens[index].isNamed) ?? true else {
                return false
            }
            return child.map { name in tokens[..<index].contains { $0.isNamed(name) } } ?? true
        }
    }

    fileprivate func renamingReferenced(_ old: SQLName, as new: String, of table: SQLName) -> String {
        replacing(new) { tokens[$0].isNamed(old) && referencedTable(around: $0) == table }
    }

    /// Renames a column in a column or constraint of the table itself.
    fileprivate func renamingOwnColumn(_ old: SQLName, as new: String, of table: SQLName, isItem: Bool) -> String {
        replacing(new) { $0 > 0 ? isOwnColumn($0, old, of: table) : isItem }
    }

    /// Returns whether a token in a column or constraint is the name of a column of the table itself.
    fileprivate func isOwnColumn(_ index: Int, _ name: SQLName, of table: SQLName) -> Bool {
        guard tokens[index].isNamed(name), depth(at: index) > 0, !isOtherName(index) else { return false }
        let isTable = index + 1 < tokens.count && tokens[index + 1].isKeyword(".")
        let parent = referencedTable(around: index)
        return !isTable && (parent == nil || parent == table)
    }

    /// Returns whether an index contains a text in double quotes that is a string unless a column has this name.
    func mayContain(string: SQLName) -> Bool {
        contains(column: string) && tokens.contains { isInDoubleQuotes($0) && $0.isNamed(string) }
    }

    /// Returns whether an index contains a column, in its columns, its expressions or its condition.
    func contains(column: SQLName) -> Bool {
        guard let open = tokens.firstIndex(where: { $0.isKeyword("(") }) else { return false }
        return tokens.indices.dropFirst(open + 1).contains { index in
            tokens[index].isNamed(column) && use(of: index) == .column && !isOtherName(index)
        }
    }
}

extension TableText.Item {
    func renamingReferences(to old: SQLName, as new: String) -> TableText.Item {
        TableText.Item(column: column, text: SQLTokens(text).renamingReferences(to: old, as: new))
    }

    /// Makes the foreign key of a column reference another table.
    ///
    /// - Parameter old: The only referenced table that is replaced; `nil` to replace any.
    package func leading(_ child: SQLName, from old: SQLName? = nil, to parent: String) -> TableText.Item {
        guard let column else {
            return TableText.Item(column: nil, text: SQLTokens(text).leading(child, from: old, to: parent))
        }
        guard SQLName(column) == child else { return self }
        return TableText.Item(column: column, text: SQLTokens(text).leading(nil, from: old, to: parent))
    }

    /// Returns whether a constraint names a column of its table.
    func uses(_ column: SQLName, of table: SQLName) -> Bool {
        let all = SQLTokens(text)
        return all.tokens.indices.contains { all.isOwnColumn($0, column, of: table) }
    }

    func renamingReferenced(_ old: SQLName, as new: String, of table: SQLName) -> TableText.Item {
        TableText.Item(column: column, text: SQLTokens(text).renamingReferenced(old, as: new, of: table))
    }
}

extension TableText {
    package func mapping(_ body: (Item) -> Item) -> TableText {
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
