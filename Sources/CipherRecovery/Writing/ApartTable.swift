internal import CipherSQLite
internal import CipherSQLiteFormat

/// The table of the rows that belong to no table, created when the first such row is added.
///
/// Each row is numbered in reading order and holds the recovered row's page, the reason why it was set aside, the
/// tables that it fits, its rowid and the values of its record.
struct ApartTable {
    let name: SchemaName
    private let tables: [SchemaName]
    private let encoding: TextEncoding
    private let connection: Connection
    private var width: Int?
    private var statements: [Int: Statement] = [:]
    private(set) var rows: Int64 = 0

    static let fixedColumns = 4
    /// The maximum number of value columns; together with the fixed columns, this is below SQLite's limit of 2,000.
    private static let mostValues = 1_990

    /// Creates the table's description.
    ///
    /// - Parameter wanted: The requested name of the table, which is used unless the schema already contains it.
    init(named wanted: String, _ forms: SchemaForms, _ encoding: TextEncoding, _ connection: Connection) {
        let taken = forms.names
        var name = wanted
        var number = 0
        while taken.contains(Array(name.utf8)) {
            name = "\(wanted)_\(number)"
            number += 1
        }
        self.name = SchemaName(bytes: name.utf8)
        tables = forms.tables.map(\.name)
        self.encoding = encoding
        self.connection = connection
    }

    mutating func add(_ row: ReadRow, _ reason: ReadRow.Reason, _ candidates: [Int]) throws {
        let count = min(row.values.count, Self.mostValues)
        try widen(to: count)
        let statement = try statements[count] ?? insertion(count)
        statements[count] = statement
        try statement.bind(Int64(row.page), at: 1)
        let reason = HeldValue(.text(reason.rawValue), .utf8)
        let names = HeldValue(candidates.isEmpty ? .null : .text(Self.list(candidates.map { tables[$0] })), .utf8)
        try statement.bind(reason.value, at: 2, .utf8)
        try statement.bind(names.value, at: 3, .utf8)
        if let rowid = row.rowid { try statement.bind(rowid, at: 4) } else { try statement.bindNull(at: 4) }
        for (index, value) in row.values.prefix(count).enumerated() {
            try statement.bind(value, at: Int32(Self.fixedColumns + index + 1), encoding)
        }
        defer {
            statement.rewind()
            withExtendedLifetime((reason, names)) {}
        }
        try statement.step()
        rows += 1
    }

    static func list(_ names: [SchemaName]) -> String { names.map(\.description).joined(separator: ", ") }

    private mutating func widen(to count: Int) throws {
        guard let width else {
            let values = (0..<count).map { ", c\($0)" }.joined()
            try connection.execute(
                "CREATE TABLE \(name)(page INTEGER, reason TEXT, tables TEXT, id INTEGER\(SQL(text: values)))")
            self.width = count
            return
        }
        guard count > width else { return }
        for number in width..<count {
            try connection.execute("ALTER TABLE \(name) ADD COLUMN \(SQL(text: "c\(number)"))")
        }
        self.width = count
    }

    private func insertion(_ count: Int) throws -> Statement {
        let columns = (0..<count).map { ", c\($0)" }.joined()
        let marks = String(repeating: ", ?", count: Self.fixedColumns - 1 + count)
        return try Statement(
            "INSERT INTO \(name)(page, reason, tables, id\(SQL(text: columns))) VALUES (?\(SQL(text: marks)))",
            on: connection)
    }
}

extension SchemaForms {
    /// All names, in lower case.
    var names: Set<[UInt8]> {
        Set(tables.flatMap { [$0.name.folded] + $0.indexes.map(\.name.folded) })
            .union(others.map(\.name.folded)).union(virtualTables.map(\.name.folded))
    }
}
