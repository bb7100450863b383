internal import CipherErrors
public import CipherSQLite

/// Everything that SQL can see of a database, as lines of text.
///
/// It is written for the tests and independent of the library's own proof. It lists every row with its rowid, every
/// value by storage class and bytes, the exact text of the schema, and the numbers in the header.
public struct DatabaseDump: Equatable, Sendable {
    /// The lines, the schema first.
    public private(set) var lines: [String] = []
    /// The number of rows of all tables.
    public private(set) var rows = 0
    private let notesFailures: Bool

    /// Reads everything.
    ///
    /// - Parameters:
    ///   - computed: Whether VIRTUAL generated columns are read too. They cannot be read if they name unknown
    ///     functions.
    ///   - noting: Whether a part that cannot be read becomes a line that says so, for damaged files.
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
            try $0.list("schema", "SELECT rowid, type, name, tbl_name, sql FROM sqlite_master", connection)
            let tables = try connection.values(
                SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid")
            for table in tables { try $0.note(table.description) { try $0.listTable(table, computed, connection) } }
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

    /// Returns some of the lines that only one of two dumps has, for messages.
    public func differences(from other: DatabaseDump) -> [String] {
        Array(
            zip(lines, other.lines).filter { $0 != $1 }.prefix(3).map { "\($0.prefix(300)) <> \($1.prefix(300))" }
                + (lines.count == other.lines.count ? [] : ["\(lines.count) <> \(other.lines.count) lines"]))
    }

    private mutating func listTable(_ table: SchemaName, _ computed: Bool, _ connection: Connection) throws {
        let (columns, taken) = try Self.columns(table, computed, connection)
        let alias = ["rowid", "_rowid_", "oid"].first { !taken.contains(Array($0.utf8)) }
        let label = table.description
        if let alias = alias.map({ SQL(text: $0) }), try hasRowid(table, alias, connection) {
            // In a separate query, because SQLite allows 2,000 columns in a result, and a table may have as many.
            try list("\(label), rowids", "SELECT \(alias) FROM \(table) NOT INDEXED ORDER BY \(alias)", connection)
            rows += try list(label, "SELECT \(columns) FROM \(table) NOT INDEXED ORDER BY \(alias)", connection)
        } else {
            // An index that contains all columns would replace the table, despite NOT INDEXED. The key of a table
            // WITHOUT ROWID is listed, but has no entry in the schema.
            let entries = try connection.values(SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'index'")
            var key: SchemaName?
            try connection.forEachRow("PRAGMA index_list(\(table))") { row in
                let name = try row.get(SchemaName.self, at: 1)
                if try row.get(String.self, at: 3) == "pk", !entries.contains(name) { key = name }
            }
            let source: SQL = key.map { "INDEXED BY \($0)" } ?? "NOT INDEXED"
            rows += try list(label, "SELECT \(columns) FROM \(table) \(source)", connection)
        }
    }

    /// Returns what to select: all columns by position, so that no name can be taken for a string or for another name.
    ///
    /// If some columns are left out, the others have qualified names.
    ///
    /// - Returns: The result columns, and the names of the columns in lower case.
    private static func columns(
        _ table: SchemaName, _ computed: Bool, _ connection: Connection
    ) throws -> (list: SQL, taken: [[UInt8]]) {
        let hasHidden = Engine.current.sqliteVersionNumber >= 3_031_000
        let pragma = SQL(text: hasHidden ? "table_xinfo" : "table_info")
        var kept: [SQL] = []
        var taken: [[UInt8]] = []
        try connection.forEachRow("PRAGMA \(pragma)(\(table))") { row in
            let column = try row.get(SchemaName.self, at: 1)
            taken.append(column.folded)
            if try !hasHidden || computed || row.get(Int.self, at: 6) != 2 { kept.append("\(table).\(column)") }
        }
        guard kept.count < taken.count, let first = kept.first else { return ("*", taken) }
        return (kept.dropFirst().reduce(first) { "\($0), \($1)" }, taken)
    }

    private func hasRowid(_ table: SchemaName, _ alias: SQL, _ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(Int64.self, "SELECT \(alias) FROM \(table) NOT INDEXED LIMIT 1")
            return true
        } catch let error as DatabaseError where error.message.contains("no such column") {
            return false
        }
    }

    /// - Returns: The number of rows.
    @discardableResult
    private mutating func list(_ table: String, _ query: SQL, _ connection: Connection) throws -> Int {
        var count = 0
        try connection.forEachRow(query) { row in
            lines.append("\(table): " + (0..<row.count).map { Self.text(row, $0) }.joined(separator: ", "))
            count += 1
        }
        return count
    }

    private static func text(_ row: borrowing Row, _ index: Int) -> String {
        // Reads bytes without reading text first. Nothing is converted, and invalid text stays unchanged.
        if row.isText(at: index) { return "text " + row.withBytes(at: index, hexadecimal) }
        switch row.value(at: index) {
        case .null: return "null"
        case .integer(let integer): return "integer \(integer)"
        case .real(let real): return "real \(String(real.bitPattern, radix: 16))"
        case .text, .blob: return "blob " + row.withBytes(at: index, hexadecimal)
        }
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
