/// Type and constraints of a column, as far as they must stay within their place in `CREATE TABLE`.
///
/// SQLite checks the rest. What is found here would otherwise change the columns that follow, without any error.
struct ColumnDefinition {
    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    /// What is wrong with a definition; `nil` where it is one.
    static func fault(of definition: String) -> String? {
        var scanner = ColumnDefinition(bytes: Array(definition.utf8))
        return scanner.fault()
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func fault() -> String? {
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                if depth < 0 { return "has a closing parenthesis without an opening one" }
            case UInt8(ascii: ",") where depth == 0:
                return "has a comma outside of parentheses, and declares one column"
            case UInt8(ascii: ";"): return "contains a semicolon"
            case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
                if !skip(to: [byte]) { return "has a quotation mark that is not closed" }
            case UInt8(ascii: "["):
                if !skip(to: [UInt8(ascii: "]")]) { return "has a bracket that is not closed" }
            case UInt8(ascii: "-") where follows("-"): return "contains a comment to the end of the line"
            case UInt8(ascii: "/") where follows("*"):
                position += 1
                if !skip(to: Array("*/".utf8)) { return "has a comment that is not closed" }
            default: break
            }
        }
        return depth > 0 ? "has an opening parenthesis without a closing one" : nil
    }

    private func follows(_ character: Unicode.Scalar) -> Bool {
        position < bytes.count && bytes[position] == UInt8(ascii: character)
    }

    /// Moves behind the next occurrence.
    ///
    /// A doubled quotation mark ends one text and begins the next, which comes to the same.
    private mutating func skip(to end: [UInt8]) -> Bool {
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
