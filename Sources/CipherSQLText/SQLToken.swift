/// A piece of SQL text.
package struct SQLToken: Sendable, Equatable {
    package enum Kind: Sendable {
        /// A keyword, or a name without quotes.
        case word
        /// A name in double quotes, backticks or brackets.
        case quotedName
        /// A string or a blob in single quotes.
        case literal
        case number
        case symbol
    }

    package let kind: Kind
    /// The token's position in the bytes of the text.
    package let range: Range<Int>
    /// The name without its quotes, or any other token as it is written.
    package let content: String

    /// The name in the token; SQLite accepts a string in single quotes if a name is required.
    package var name: String {
        guard kind == .literal, content.utf8.count >= 2 else { return content }
        let inner = content.utf8.dropFirst().dropLast()
        var result: [UInt8] = []
        var isSecond = false
        for byte in inner {
            isSecond = byte == UInt8(ascii: "'") && !isSecond
            if byte != UInt8(ascii: "'") || isSecond { result.append(byte) }
        }
        // Only ASCII characters of a String were removed, so this is valid UTF-8.
        return String(decoding: result, as: UTF8.self)
    }

    package var isName: Bool { kind == .word || kind == .quotedName }

    /// Returns whether the token is the given keyword or symbol; a quoted name is neither.
    package func isKeyword(_ text: String) -> Bool {
        (kind == .word || kind == .symbol) && SQLName(content) == SQLName(text)
    }

    /// Returns whether the token is the given name.
    package func isNamed(_ name: SQLName) -> Bool { isName && SQLName(content) == name }

    /// Whether the token is a keyword that can never be a name without quotes.
    package var isReserved: Bool { kind == .word && NormalizedSQL.reserved.contains(SQLName(content).text) }

    // Without quotes, these words are values; in quotes, they are names or strings.
    private static let values = Set(
        ["true", "false", "null", "current_time", "current_date", "current_timestamp"].map(SQLName.init))

    /// A word that is equal for tokens with the same meaning in SQLite, which compares bytes.
    package var normalized: SQLWord {
        switch kind {
        case .word, .number, .symbol: SQLWord(bytes: SQLName(content).folded)
        case .quotedName:
            SQLWord(
                bytes: (Self.values.contains(SQLName(content)) ? Array("\"".utf8) : []) + SQLName(content).folded)
        case .literal: SQLWord(bytes: Array(content.utf8))
        }
    }
}

/// A token without its formatting, compared by its bytes.
package struct SQLWord: Sendable, Hashable, ExpressibleByStringLiteral {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    package init(stringLiteral value: String) {
        bytes = Array(value.utf8)
    }
}
