public import CipherSQLite

/// Everything that SQL can see of a database, as lines of text.
///
/// Written for the tests and independent of the library's own proof: it lists every row with its rowid, every value by
/// storage class and bytes, the schema to the letter, and the numbers of the header.
public struct DatabaseDump: Equatable, Sendable {
    /// The lines, the schema first.
    public private(set) var lines: [String] = []
    /// The number of rows of all tables.
    public private(set) var rows = 0
    private let notesFailures: Bool

    /// Reads everything.
    ///
    /// - Parameters:
    ///   - computed: Whether VIRTUAL generated columns are read too; not where they name unknown functions.
    ///   - noting: Whether a part that cannot be read becomes a line that says so, for files that are damaged.
    public init(_ connection: Connection, computed: Bool = true, noting: Bool = false) throws {
        notesFailures = noting
        for pragma in [
            "user_version", "application_id", "auto_vacuum", "encoding", "schema_version", "journal_mode",
            "default_cache_size",
        ] {
            try note(pragma) {
                let value = try connection.value(Value.self, SQL(text: "PRAGMA \(pragma)"))
                $0.append("\(pragma) = \(value.map { "\($0)" } ?? "nothing")")
            }
        }
        try note("schema") {
            try $0.list("schema", "FROM sqlite_master", ["rowid", "type", "name", "tbl_name", "sql"], connection)
            let tables = try connection.values(
                String.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid")
            for table in tables { try $0.note(table) { try $0.listTable(table, computed, connection) } }
        }
    }

    private mutating func append(_ line: String) { lines.append(line) }

    private mutating func note(_ part: String, _ body: (inout DatabaseDump) throws -> Void) throws {
        do {
            try body(&self)
        } catch let error as DatabaseError where notesFailures {
            lines.append("\(part): SQLite code \(error.code)")
        }
    }

    /// The lines that only one of two dumps has, a few of them, for messages.
    public func differences(from other: DatabaseDump) -> [String] {
        Array(
            zip(lines, other.lines).filter { $0 != $1 }.prefix(3).map { "\($0.prefix(300)) <> \($1.prefix(300))" }
                + (lines.count == other.lines.count ? [] : ["\(lines.count) <> \(other.lines.count) lines"]))
    }

    private mutating func listTable(_ table: String, _ computed: Bool, _ connection: Connection) throws {
        let name = SQL.quoted(identifier: table)
        var columns: [String] = []
        var taken: [String] = []
        let hasHidden = Engine.current.sqliteVersionNumber >= 3_031_000
        try connection.forEachRow(SQL(text: "PRAGMA \(hasHidden ? "table_xinfo" : "table_info")(\(name))")) { row in
            let column = try row.get(String.self, at: 1)
            taken.append(column.lowercased())
            if try !hasHidden || computed || row.get(Int.self, at: 6) != 2 {
                columns.append(SQL.quoted(identifier: column))
            }
        }
        let alias = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
        if let alias, try hasRowid(name, alias, connection) {
            try list(table, "FROM \(name) NOT INDEXED ORDER BY \(alias)", [alias] + columns, connection)
        } else {
            // An index that holds all columns would stand in for the table, whatever NOT INDEXED says.
            var key: String?
            try connection.forEachRow(SQL(text: "PRAGMA index_list(\(name))")) { row in
                if try row.get(String.self, at: 3) == "pk" { key = try row.get(at: 1) }
            }
            let source = key.map { "INDEXED BY \(SQL.quoted(identifier: $0))" } ?? "NOT INDEXED"
            try list(table, "FROM \(name) \(source)", columns, connection)
        }
    }

    private func hasRowid(_ name: String, _ alias: String, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(Int64.self, SQL(text: "SELECT \(alias) FROM \(name) NOT INDEXED LIMIT 1"))
            return true
        } catch let error as DatabaseError where error.message.contains("no such column") {
            return false
        }
    }

    /// In slices, for SQLite allows 2,000 columns in a result.
    private mutating func list(
        _ table: String, _ source: String, _ columns: [String], _ connection: Connection
    ) throws {
        for first in stride(from: 0, to: columns.count, by: 500) {
            let slice = columns[first..<min(first + 500, columns.count)]
            let list = slice.map { "typeof(\($0)), \($0)" }.joined(separator: ", ")
            var count = 0
            try connection.forEachRow(SQL(text: "SELECT \(list) \(source)")) { row in
                lines.append("\(table): " + (0..<slice.count).map { Self.text(row, 2 * $0) }.joined(separator: ", "))
                count += 1
            }
            if first == 0 { rows += count }
        }
    }

    private static func text(_ row: borrowing Row, _ index: Int) -> String {
        guard case .text(let type) = row.value(at: index) else { return "?" }
        if type == "integer" || type == "real" {
            switch row.value(at: index + 1) {
            case .integer(let integer): return "integer \(integer)"
            case .real(let real): return "real \(String(real.bitPattern, radix: 16))"
            case let other: return "\(other)"
            }
        }
        // As bytes, without asking for text before: nothing is converted, and what is not valid text stays as it is.
        return "\(type) " + row.withBytes(at: index + 1, hexadecimal)
    }

    private static func hexadecimal(_ bytes: UnsafeRawBufferPointer) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            for (index, byte) in bytes.enumerated() {
                text[2 * index] = digits[Int(byte >> 4)]
                text[2 * index + 1] = digits[Int(byte & 15)]
            }
            return 2 * bytes.count
        }
    }
}
