/// SQL that is inserted into a statement and must not extend beyond its place: a column's definition, a constraint, an
/// expression.
///
/// SQLite itself checks whether the whole statement is valid; this type checks where the fragment ends, which SQLite
/// cannot know.
package struct SQLFragment {
    private let bytes: [UInt8]
    private let isColumn: Bool
    private var position = 0
    private var depth = 0

    /// Returns the fault of a text, as the end of a sentence about the text; `nil` if the text does not extend beyond
    /// its place.
    ///
    /// - Parameter isColumn: Whether the text defines a column: one element of a list, on the same line as the next
    ///   element.
    package static func fault(in text: String, isColumn: Bool = false) -> String? {
        var scanner = SQLFragment(bytes: Array(text.utf8), isColumn: isColumn)
        return scanner.fault()
    }

    private init(bytes: [UInt8], isColumn: Bool) {
        self.bytes = bytes
        self.isColumn = isColumn
    }

    private mutating func fault() -> String? {
        guard !bytes.contains(0) else { return "contains a NUL character" }
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                if depth < 0 { return "contains a closing parenthesis without an opening parenthesis" }
            case UInt8(ascii: ",") where isColumn && depth == 0:
                return "contains a comma outside parentheses, but must declare only one column"
            case UInt8(ascii: ";"): return "contains a semicolon"
            case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
                if !skip(past: [byte]) { return "contains an unclosed quotation mark" }
            case UInt8(ascii: "["):
                if !skip(past: [UInt8(ascii: "]")]) { return "contains an unclosed bracket" }
            case UInt8(ascii: "-") where next == UInt8(ascii: "-"):
                guard !isColumn else { return "contains a line comment (--)" }
                if !skip(past: [UInt8(ascii: "\n")]) { return "contains an unclosed comment" }
            case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
                position += 1
                if !skip(past: Array("*/".utf8)) { return "contains an unclosed comment" }
            default: break
            }
        }
        return depth > 0 ? "contains an opening parenthesis without a closing parenthesis" : nil
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Moves past the next occurrence of `end`.
    ///
    /// A doubled quotation mark is treated as the end of one string and the beginning of the next, with the same
    /// result.
    private mutating func skip(past end: [UInt8]) -> Bool {
        while position < bytes.count {
            if bytes[position...].starts(with: end) {
                position += end.count
                return true
            }
            position += 1
        }
        return false
    }
}
