/// Finds text in a column definition that would reach beyond the column.
///
/// Definitions come from an app's property list and are pasted into `CREATE TABLE`. SQLite itself judges whether the
/// whole is valid; this judges what SQLite cannot see, namely where one definition ends.
struct DefinitionScanner {
    private let bytes: [UInt8]
    private var position = 0

    /// What is wrong with a definition; `nil` where it keeps to itself.
    static func problem(in definition: String) -> String? {
        var scanner = DefinitionScanner(bytes: Array(definition.utf8))
        return scanner.scan()
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func scan() -> String? {
        var depth = 0
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case 0: return "it holds a NUL character"
            case UInt8(ascii: ";"): return "it holds a semicolon outside of quotes"
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                if depth < 0 { return "it closes a parenthesis that it did not open" }
            case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
                if !skip(past: [byte]) { return "a quote is not closed" }
            case UInt8(ascii: "["):
                if !skip(past: [UInt8(ascii: "]")]) { return "a bracket is not closed" }
            case UInt8(ascii: "-") where next == UInt8(ascii: "-"):
                if !skip(past: [UInt8(ascii: "\n")]) { return "a comment is not closed" }
            case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
                position += 1
                if !skip(past: Array("*/".utf8)) { return "a comment is not closed" }
            default: break
            }
        }
        return depth == 0 ? nil : "a parenthesis is not closed"
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// A doubled quote ends one piece and begins the next, which comes to the same.
    private mutating func skip(past end: [UInt8]) -> Bool {
        while position < bytes.count {
            if bytes[position...].starts(with: end) {
                position += end.count
                return true
            }
            if bytes[position] == 0 { return false }
            position += 1
        }
        return false
    }
}
