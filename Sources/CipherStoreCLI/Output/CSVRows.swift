import CipherSQLite

/// Rows as comma-separated values by RFC 4180, with the names in the first line.
///
/// NULL is an empty field, and empty text is two quotes. A blob is `X'hex'`.
final class CSVRows: RowWriter {
    private let names: [String]

    init(names: [String]) {
        self.names = names
    }

    func begin() throws {
        if !names.isEmpty { try Output.text(names.map(Self.quoted).joined(separator: ",") + "\r\n") }
    }

    func write(_ row: borrowing Row) throws {
        var line = ""
        for index in 0..<row.count {
            if index > 0 { line += "," }
            switch row.value(at: index) {
            case .null: break
            case .integer(let integer): line += String(integer)
            case .real(let real): line += String(real)
            case .text(let text): line += Self.quoted(text)
            case .blob(let bytes): line += "X'\(hexadecimal(bytes))'"
            }
        }
        try Output.text(line + "\r\n")
    }

    func end() {}

    private static func quoted(_ text: String) -> String {
        // By scalar: CR LF is one character to Swift, and a quote with a combining mark is one, too.
        let scalars = text.unicodeScalars
        guard scalars.isEmpty || scalars.contains(where: { ",\"\r\n".unicodeScalars.contains($0) }) else { return text }
        var result = "\""
        for scalar in scalars {
            if scalar == "\"" { result += "\"" }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}
