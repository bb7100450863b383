internal import CipherErrors
internal import CipherSQLite

/// Rows as an aligned table for people.
///
/// The first rows determine the widths of the columns, so that a large result need not be held in memory; a wider value
/// in a later row takes the space that it needs.
final class TableRows: RowWriter {
    /// The number of rows, and of bytes in them, that determine the widths.
    private static let sample = (rows: 500, bytes: 1 << 20)
    private let names: [String]
    private var waiting: [[Cell]] = []
    private var waitingBytes = 0
    private var widths: [Int]?

    private struct Cell {
        var text: String
        var isNumber = false
    }

    init(names: [String]) {
        self.names = names.map { SystemPath.printable($0) }
    }

    func begin() {}

    func write(_ row: borrowing Row) throws {
        var cells: [Cell] = []
        for index in 0..<row.count { cells.append(Self.cell(row, index)) }
        if let widths { return try print(cells, widths) }
        waiting.append(cells)
        waitingBytes += cells.reduce(0) { $0 + $1.text.utf8.count }
        if waiting.count >= Self.sample.rows || waitingBytes >= Self.sample.bytes { try printWaiting() }
    }

    func end() throws {
        if widths == nil { try printWaiting() }
    }

    private static func cell(_ row: borrowing Row, _ index: Int) -> Cell {
        switch row.value(at: index) {
        case .null: Cell(text: "NULL")
        case .integer(let integer): Cell(text: String(integer), isNumber: true)
        case .real(let real): Cell(text: String(real), isNumber: true)
        case .text: Cell(text: SystemPath.printable(row.withBytes(at: index) { SystemPath.text($0) }))
        case .blob(let bytes): Cell(text: "X'\(hexadecimal(bytes))'")
        }
    }

    private func printWaiting() throws {
        // A statement such as ATTACH has no columns.
        guard !names.isEmpty else { return }
        var widths = names.map(TerminalText.width)
        for row in waiting {
            for (index, cell) in row.enumerated() { widths[index] = max(widths[index], TerminalText.width(cell.text)) }
        }
        self.widths = widths
        try print(names.map { Cell(text: $0) }, widths)
        try Output.text(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  ") + "\n")
        for row in waiting { try print(row, widths) }
        waiting = []
    }

    private func print(_ cells: [Cell], _ widths: [Int]) throws {
        var line = ""
        for (index, cell) in cells.enumerated() {
            let padding = String(repeating: " ", count: max(0, widths[index] - TerminalText.width(cell.text)))
            let isLast = index == cells.count - 1
            line += cell.isNumber ? padding + cell.text : cell.text + (isLast ? "" : padding)
            if !isLast { line += "  " }
        }
        try Output.text(line + "\n")
    }
}
