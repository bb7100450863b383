internal import CipherSQLite

/// The text of a CREATE TABLE statement in parts: columns, table constraints, and the options after them.
///
/// SQLite has already accepted the statement; this type determines where one part ends and the next begins. Names of
/// columns are no longer qualified with the table's name, so that the parts can also define a table of another name.
package struct TableText: Sendable, Equatable {
    /// A column or a table constraint.
    package struct Item: Sendable, Equatable {
        /// The column's name; `nil` for a table constraint.
        package var column: String?
        /// The text of the item.
        package var text: String

        package init(column: String? = nil, text: String) {
            self.column = column
            self.text = text
        }

        /// Compares by bytes, as SQLite does.
        package static func == (left: Item, right: Item) -> Bool {
            left.column.map(SQLName.init) == right.column.map(SQLName.init)
                && left.text.utf8.elementsEqual(right.text.utf8)
        }

        /// Whether the item is the table constraint that declares the primary key, with or without a name.
        package var isPrimaryKey: Bool {
            let words = SQLTokens.normalized(text)
            let key: [SQLWord] = ["primary", "key"]
            return column == nil
                && (words.starts(with: key) || (words.first == "constraint" && words.dropFirst(2).starts(with: key)))
        }

        /// Returns the texts in the parentheses that directly follow a keyword, such as those of CHECK.
        package func expressions(after keyword: String) -> [String] {
            let all = SQLTokens(text)
            return all.tokens.indices.compactMap { index in
                guard all.tokens[index].isKeyword(keyword), all.depth(at: index) == 0, index + 1 < all.tokens.count,
                    all.tokens[index + 1].isKeyword("("), let close = all.closing(index + 1)
                else { return nil }
                // The text is Unicode, and parentheses are whole characters of it, so the part is Unicode, too.
                let bytes = all.bytes[all.tokens[index + 1].range.upperBound..<all.tokens[close].range.lowerBound]
                return String(decoding: bytes, as: UTF8.self)
            }
        }

        /// Returns the item without a constraint that begins with these two keywords, such as NOT NULL or PRIMARY KEY.
        package func removing(_ first: String, _ second: String) -> Item {
            let all = SQLTokens(text)
            var removed: [Int: String] = [:]
            for index in all.tokens.indices where all.depth(at: index) == 0 {
                func isKeyword(_ place: Int, _ word: String) -> Bool {
                    all.tokens.indices.contains(place) && all.tokens[place].isKeyword(word)
                }
                guard isKeyword(index, first), isKeyword(index + 1, second) else { continue }
                var end = index + 2
                if isKeyword(end, "ASC") || isKeyword(end, "DESC") { end += 1 }
                if isKeyword(end, "ON"), isKeyword(end + 1, "CONFLICT") { end += 3 }
                if isKeyword(end, "AUTOINCREMENT") { end += 1 }
                let start = isKeyword(index - 2, "CONSTRAINT") ? index - 2 : index
                for place in start..<min(end, all.tokens.count) { removed[place] = "" }
            }
            return Item(column: column, text: all.replacing(removed))
        }
    }

    /// The columns, followed by the constraints.
    package var items: [Item]
    /// The text after the last parenthesis, such as `WITHOUT ROWID`.
    package var suffix: String

    /// Parses a statement; returns `nil` if it has no list of columns.
    package init?(_ sql: String) {
        let all = SQLTokens(sql)
        guard let open = all.tokens.firstIndex(where: { $0.kind == .symbol && $0.content == "(" }),
            let close = all.closing(open)
        else { return nil }
        items = Self.split(all, open + 1..<close).map { item in
            guard open > 0, item.text.utf8.contains(UInt8(ascii: ".")) else { return item }
            return Item(column: item.column, text: Self.unqualified(item.text, SQLName(all.tokens[open - 1].content)))
        }
        let rest = all.tokens[(close + 1)...]
        suffix = rest.isEmpty ? "" : Self.slice(all, rest.startIndex..<rest.endIndex)
    }

    package var columns: [Item] { items.filter { $0.column != nil } }
    package var constraints: [Item] { items.filter { $0.column == nil } }

    package func column(_ name: SQLName) -> Item? { items.first { $0.column.map(SQLName.init) == name } }

    /// Returns the statement for a table with the given name.
    package func createSQL(name: String) -> String {
        let list = items.map(\.text).joined(separator: ", ")
        let end = suffix.isEmpty ? "" : " \(suffix)"
        return "CREATE TABLE \(SQL.quoted(identifier: name)) (\(list))\(end)"
    }

    package func hasOption(_ words: SQLWord...) -> Bool {
        let suffix = SQLTokens.normalized(self.suffix)
        return suffix.indices.contains { suffix[$0...].starts(with: words) }
    }

    private static let constraintWords = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]

    private static func split(_ all: SQLTokens, _ range: Range<Int>) -> [Item] {
        var items: [Item] = []
        var start = range.lowerBound
        var depth = 0
        for index in range.lowerBound...range.upperBound {
            let token = all.tokens[index]
            var isComma = false
            if index < range.upperBound {
                if token.kind == .symbol, token.content == "(" { depth += 1 }
                if token.kind == .symbol, token.content == ")" { depth -= 1 }
                isComma = token.kind == .symbol && token.content == ","
                guard depth == 0, isComma || beginsConstraint(all, index, after: start) else { continue }
            }
            if start < index {
                let first = all.tokens[start]
                items.append(Item(column: isConstraint(first) ? nil : first.name, text: slice(all, start..<index)))
            }
            start = isComma ? index + 1 : index
        }
        return items
    }

    private static func isConstraint(_ first: SQLToken) -> Bool { constraintWords.contains { first.isKeyword($0) } }

    /// Returns whether a token begins another table constraint; SQLite does not require a comma between two of them.
    private static func beginsConstraint(_ all: SQLTokens, _ index: Int, after start: Int) -> Bool {
        guard index > start, isConstraint(all.tokens[start]), isConstraint(all.tokens[index]) else { return false }
        // The constraint itself follows its name.
        return !(all.tokens[start].isKeyword("CONSTRAINT") && index == start + 2)
    }

    /// Returns the text of an item without the table's name before the names of columns.
    private static func unqualified(_ text: String, _ table: SQLName) -> String {
        let all = SQLTokens(text)
        let names = all.tokens.indices.dropLast().filter { index in
            all.tokens[index].isNamed(table) && all.tokens[index + 1].isKeyword(".")
                && !(index > 0 && all.tokens[index - 1].isKeyword("."))
        }
        return all.replacing(Dictionary(uniqueKeysWithValues: names.flatMap { [($0, ""), ($0 + 1, "")] }))
    }

    private static func slice(_ all: SQLTokens, _ range: Range<Int>) -> String {
        guard !range.isEmpty else { return "" }
        let bytes = all.bytes[
            all.tokens[range.lowerBound].range.lowerBound..<all.tokens[range.upperBound - 1].range.upperBound]
        return String(decoding: bytes, as: UTF8.self)
    }
}
