internal import CCipherEngine

extension SQL {
    /// Returns the statements of a script, without the semicolons between them.
    ///
    /// Comments and white space alone are not a statement.
    ///
    /// No database is needed. SQLite's own tokenizer determines whether a statement ends, so a trigger's body is not
    /// split.
    ///
    /// The corresponding C function is `sqlite3_complete`.
    package static func statements(of script: String) -> [String] {
        let bytes = Array(script.utf8)
        var statements: [String] = []
        var start = 0
        var position = 0
        while position < bytes.count {
            let end = endOfToken(at: position, in: bytes)
            // The check is made only at semicolons outside of strings and comments, because SQLite reads from the
            // beginning each time.
            if bytes[position] == UInt8(ascii: ";"), isComplete(bytes[start..<end]) {
                append(bytes[start..<position], to: &statements)
                start = end
            }
            position = end
        }
        append(bytes[start...], to: &statements)
        return statements
    }

    /// Returns a statement with its names in backticks instead of double quotes; `nil` if it has no double quotes to
    /// replace.
    ///
    /// SQLite treats a name in double quotes as a string if no column has that name, but never a name in backticks. A
    /// definition stays as it is, because its text is stored in the schema.
    ///
    /// Source: SQLite, "Double-quoted String Literals Are Accepted".
    static func quotingNamesOnly(_ statement: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8]? {
        let (quote, backtick) = (UInt8(ascii: "\""), UInt8(ascii: "`"))
        guard statement.contains(quote) else { return nil }
        let bytes = Array(statement)
        guard let first = firstOfStatement(bytes[...]) else { return nil }
        let word = String(decoding: bytes[first...].prefix { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a }, as: UTF8.self)
        guard !["CREATE", "ALTER"].contains(word.uppercased()) else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var position = 0
        while position < bytes.count {
            let end = endOfToken(at: position, in: bytes)
            if bytes[position] == quote {
                // Two quotes in a row are one quote within the name; here, the two parts of the name are two tokens.
                if position > 0, bytes[position - 1] == quote, result.last == backtick {
                    result[result.count - 1] = quote
                } else {
                    result.append(backtick)
                }
                for byte in bytes[position + 1..<end].dropLast() {
                    result += byte == backtick ? [backtick, backtick] : [byte]
                }
                result.append(backtick)
            } else {
                result += bytes[position..<end]
            }
            position = end
        }
        return result
    }

    /// Returns the position after a string, a quoted name or a comment, or otherwise after one byte.
    private static func endOfToken(at position: Int, in bytes: [UInt8]) -> Int {
        let end: [UInt8]
        var next = position + 1
        switch bytes[position] {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): end = [bytes[position]]
        case UInt8(ascii: "["): end = [UInt8(ascii: "]")]
        case UInt8(ascii: "-") where next < bytes.count && bytes[next] == UInt8(ascii: "-"): end = [UInt8(ascii: "\n")]
        case UInt8(ascii: "/") where next < bytes.count && bytes[next] == UInt8(ascii: "*"):
            end = Array("*/".utf8)
            next += 1
        default: return next
        }
        while next < bytes.count, !bytes[next...].starts(with: end) { next += 1 }
        return min(next + end.count, bytes.count)
    }

    private static func isComplete(_ bytes: ArraySlice<UInt8>) -> Bool {
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { sqlite3_complete($0.baseAddress) != 0 }
        }
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to statements: inout [String]) {
        guard let first = firstOfStatement(bytes) else { return }
        var piece = bytes[first...]
        while let last = piece.last, last.isSpace { piece.removeLast() }
        statements.append(String(decoding: piece, as: UTF8.self))
    }

    /// Returns the position of the first word, after white space and comments; `nil` if there is none.
    private static func firstOfStatement(_ bytes: ArraySlice<UInt8>) -> Int? {
        var rest = bytes
        while let byte = rest.first {
            if byte.isSpace {
                rest = rest.dropFirst()
            } else if rest.starts(with: "--".utf8) {
                rest = rest.drop { $0 != UInt8(ascii: "\n") }
            } else if rest.starts(with: "/*".utf8) {
                rest = rest.dropFirst(2)
                while !rest.isEmpty, !rest.starts(with: "*/".utf8) { rest = rest.dropFirst() }
                rest = rest.dropFirst(2)
            } else {
                return rest.startIndex
            }
        }
        return nil
    }
}
