internal import CipherSQLite

/// SQL text as tokens, without white space and comments.
///
/// Source: SQLite's tokenizer. An operator of several characters becomes several symbols, which makes no difference for
/// comparing or replacing names.
package struct SQLTokens {
    /// The text in UTF-8.
    package let bytes: [UInt8]
    /// The tokens, in order.
    package private(set) var tokens: [SQLToken] = []
    /// The number of parentheses that enclose each token, and the end of the text.
    ///
    /// They are counted once, because a hostile schema may have hundreds of thousands of tokens.
    private var depths = [0]
    private var position = 0

    /// Splits a text into tokens.
    ///
    /// - Parameter count: The maximum number of tokens, from the first token on.
    package init(_ text: String, first count: Int = .max) {
        bytes = Array(text.utf8)
        while position < bytes.count, tokens.count < count { scan() }
    }

    /// Returns words that are equal for texts that differ only in white space, comments, quotes around names and the
    /// case of letters.
    package static func normalized(_ text: String) -> [SQLWord] { SQLTokens(text).tokens.map(\.normalized) }

    /// Returns whether a token is in double quotes, so that it can be a name or a string.
    package func isInDoubleQuotes(_ token: SQLToken) -> Bool {
        token.kind == .quotedName && bytes[token.range.lowerBound] == UInt8(ascii: "\"")
    }

    /// Returns the text with some tokens replaced, each by its index in ``tokens``.
    package func replacing(_ replacements: [Int: String]) -> String {
        var result: [UInt8] = []
        var end = 0
        for index in replacements.keys.sorted() {
            result += bytes[end..<tokens[index].range.lowerBound]
            result += Array((replacements[index] ?? "").utf8)
            end = tokens[index].range.upperBound
        }
        return String(decoding: result + bytes[end...], as: UTF8.self)
    }

    /// Returns the index of the parenthesis that closes the one at `open`.
    package func closing(_ open: Int) -> Int? {
        var depth = 0
        for index in open..<tokens.count where tokens[index].kind == .symbol {
            if tokens[index].content == "(" { depth += 1 }
            if tokens[index].content == ")" { depth -= 1 }
            if depth == 0 { return index }
        }
        return nil
    }

    /// Returns the number of parentheses that enclose a token.
    package func depth(at index: Int) -> Int { depths[index] }

    // MARK: Scanning

    private mutating func scan() {
        let start = position
        let byte = bytes[position]
        position += 1
        switch byte {
        case 0x09, 0x0a, 0x0c, 0x0d, 0x20: break
        case 0xef where Engine.current.skipsByteOrderMarks && bytes[position...].starts(with: [0xbb, 0xbf]):
            position += 2
        case UInt8(ascii: "-") where next == UInt8(ascii: "-"): skip(past: Array("\n".utf8))
        case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
            position += 1
            skip(past: Array("*/".utf8))
        case UInt8(ascii: "'"):
            skipQuotes(byte)
            append(.literal, start)
        case UInt8(ascii: "\""), UInt8(ascii: "`"):
            skipQuotes(byte)
            append(.quotedName, start, content: unquoted(start + 1..<max(start + 1, position - 1), byte))
        case UInt8(ascii: "["):
            skip(past: Array("]".utf8))
            append(.quotedName, start, content: text(start + 1..<max(start + 1, position - 1)))
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            if next == UInt8(ascii: "'") {
                position += 1
                skipQuotes(UInt8(ascii: "'"))
                append(.literal, start)
            } else {
                scanWord(.word, start)
            }
        case UInt8(ascii: "0")...UInt8(ascii: "9"): scanWord(.number, start)
        case let byte where Self.isWord(byte): scanWord(.word, start)
        default: append(.symbol, start)
        }
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func scanWord(_ kind: SQLToken.Kind, _ start: Int) {
        while let byte = next, Self.isWord(byte) || (kind == .number && byte == UInt8(ascii: ".")) { position += 1 }
        append(kind, start)
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }

    /// Moves past the quote that ends a string or name; a doubled quote belongs to the string or name.
    private mutating func skipQuotes(_ quote: UInt8) {
        while position < bytes.count {
            position = Self.place(of: quote, in: bytes, from: position) + 1
            guard next == quote else { break }
            position += 1
        }
        position = min(position, bytes.count)
    }

    /// Returns the first position of a byte, or the end.
    ///
    /// The search uses pointers, because schemas may contain megabytes between quotes.
    private static func place(of byte: UInt8, in bytes: [UInt8], from start: Int) -> Int {
        bytes.withUnsafeBufferPointer { bytes in
            guard let first = bytes.baseAddress else { return start }
            var place = start
            while place < bytes.count, first[place] != byte { place += 1 }
            return place
        }
    }

    private mutating func skip(past end: [UInt8]) {
        while position < bytes.count {
            if bytes[position...].starts(with: end) {
                position += end.count
                return
            }
            position += 1
        }
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func unquoted(_ range: Range<Int>, _ quote: UInt8) -> String {
        var result: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            result.append(bytes[index])
            index += bytes[index] == quote ? 2 : 1
        }
        return String(decoding: result, as: UTF8.self)
    }

    private mutating func append(_ kind: SQLToken.Kind, _ start: Int, content: String? = nil) {
        let token = SQLToken(kind: kind, range: start..<position, content: content ?? text(start..<position))
        tokens.append(token)
        let opened = kind != .symbol ? 0 : token.content == "(" ? 1 : token.content == ")" ? -1 : 0
        depths.append(depths[depths.count - 1] + opened)
    }
}
