internal import CipherSQLite

extension RecordedVersion.VersionColumn {
    /// What is written where a version is recorded, as its writer wrote it.
    func value(of version: SchemaVersion, in connection: Connection) throws -> Value? {
        var found: Value?
        try connection.forEachRow(
            SQL(text: "SELECT \(SQL.quoted(column: column)) FROM \(target)\(condition)")
        ) { row in
            let value = row.value(at: 0)
            if RecordedValue(value)?.version(offset: offset) == version { found = value }
        }
        return found
    }

    /// The statements that record a version: in the rows that are there, or in a new one.
    func statements(recording value: Value) -> [String] {
        let names = filter.keys.sorted()
        let columns = (names + [column]).map { SQL.quoted(identifier: $0) }.joined(separator: ", ")
        let values = (names.map { SQL.quoted(text: filter[$0] ?? "") } + [literal(value)]).joined(separator: ", ")
        return [
            "UPDATE \(target) SET \(SQL.quoted(identifier: column)) = \(literal(value))\(condition)",
            "INSERT INTO \(target) (\(columns)) SELECT \(values) "
                + "WHERE NOT EXISTS (SELECT 1 FROM \(target)\(condition))",
        ]
    }

    /// Which rows record the version; empty where all do.
    var terms: String {
        filter.sorted { $0.key < $1.key }
            .map { "\(SQL.quoted(column: $0.key)) = \(SQL.quoted(text: $0.value))" }.joined(separator: " AND ")
    }

    /// The same as a WHERE clause.
    var condition: String { terms.isEmpty ? "" : " WHERE \(terms)" }

    private var target: String { "main.\(SQL.quoted(identifier: table))" }

    private func literal(_ value: Value) -> String {
        switch value {
        case .integer(let integer): "\(integer)"
        case .real(let real): "\(real)"
        case .text(let text): SQL.quoted(text: text)
        case .null, .blob: "NULL"
        }
    }
}
