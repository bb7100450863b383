internal import CipherErrors
internal import CipherSQLite

/// Rows as comma-separated values as in RFC 4180, with the names in the first line.
///
/// NULL is an empty field, and empty text is two quotes. A blob is `X'hex'`. Text has exactly the stored bytes, valid
/// UTF-8 or not; on a terminal, characters that it would act upon and bytes that are not UTF-8 are escaped.
final class CSVRows: RowWriter {
    private let names: [String]
    private let isForTerminal = Output.isTerminal

    init(names: [String]) {
        self.names = names
    }

    func begin() throws {
        guard !names.isEmpty else { return }
        try Output.bytes(names.map { field(Array($0.utf8)) }.joined(separator: [UInt8(ascii: ",")]))
        try Output.text("\r\n")
    }

    func write(_ row: borrowing Row) throws {
        var line: [UInt8] = []
        for index in 0..<row.count {
            if index > 0 { line.append(UInt8(ascii: ",")) }
            switch row.value(at: index) {
            case .null: break
            case .integer(let integer): line += String(integer).utf8
            case .real(let real): line += String(real).utf8
            case .text: line += row.withBytes(at: index) { field([UInt8]($0)) }
            case .blob(let bytes): line += "X'\(hexadecimal(bytes))'".utf8
            }
        }
        try Output.bytes(line + "\r\n".utf8)
    }

    func end() {}

    private func field(_ stored: [UInt8]) -> [UInt8] {
        let bytes = isForTerminal ? Array(SystemPath.printable(SystemPath.text(stored)).utf8) : stored
        guard bytes.isEmpty || bytes.contains(where: { ",\"\r\n".utf8.contains($0) }) else { return bytes }
        let quote = UInt8(ascii: "\"")
        return [quote] + bytes.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }
}
