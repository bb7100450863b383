internal import CipherErrors
internal import CipherPlatform
package import CipherSQLite

/// Rows as a JSON array of objects, one row per line.
///
/// Integers keep all 64 bits and reals read back to the same bits. A blob, or text that is not valid UTF-8, is an
/// object `{"type": …, "base64": …}`.
package final class JSONRows: RowWriter {
    private let keys: [String]
    private var isFirst = true

    init(names: [String]) {
        keys = Self.distinct(names).map(Self.quoted)
    }

    package func begin() throws { try Output.text("[") }

    package func write(_ row: borrowing Row) throws {
        var line = isFirst ? "\n{" : ",\n{"
        isFirst = false
        for index in 0..<row.count {
            if index > 0 { line += "," }
            line += "\(keys[index]):\(Self.json(row, index))"
        }
        try Output.text(line + "}")
    }

    package func end() throws { try Output.text(isFirst ? "]\n" : "\n]\n") }

    private static func json(_ row: borrowing Row, _ index: Int) -> String {
        switch row.value(at: index) {
        case .null: return "null"
        case .integer(let integer): return String(integer)
        case .real(let real):
            // JSON has no infinity; a number beyond the largest double is read as infinity.
            return real.isFinite ? String(real) : real < 0 ? "-9e999" : "9e999"
        case .text(let text):
            // If decoding had to repair the text, its bytes are printed instead.
            let bytes = row.withBytes(at: index) { [UInt8]($0) }
            return text.utf8.elementsEqual(bytes) ? quoted(text) : base64("text", bytes)
        case .blob(let bytes): return base64("blob", bytes)
        }
    }

    private static func base64(_ type: String, _ bytes: [UInt8]) -> String {
        "{\"type\":\"\(type)\",\"base64\":\"\(Data(bytes).base64EncodedString())\"}"
    }

    /// Returns distinct names, because an object can contain a name only once: the second `id` becomes `id_2`.
    package static func distinct(_ names: [String]) -> [String] {
        // Compared by bytes: to SQLite and to JSON, the same letters in different Unicode forms are different names.
        let given = Set(names.map { Array($0.utf8) })
        var taken = Set<[UInt8]>()
        return names.map { name in
            guard !taken.insert(Array(name.utf8)).inserted else { return name }
            for number in 2... {
                let candidate = "\(name)_\(number)"
                let bytes = Array(candidate.utf8)
                if !given.contains(bytes), taken.insert(bytes).inserted { return candidate }
            }
            return name
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                result += "\\\(scalar)"
            } else if let escape = SystemPath.jsonEscape(scalar) {
                result += escape
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
