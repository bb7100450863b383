internal import CipherSQLite
internal import CipherSQLiteFormat

/// The structure of the entries of an index.
struct IndexLayout: Sendable {
    /// One column of the entries.
    struct Part: Sendable {
        /// The column of the table, from 0; `nil` for the rowid.
        let position: Int?
        /// The SQL that names the column, prefixed with the table's name, so that it can mean nothing but a column.
        let sql: SQL
        let collation: SchemaName
        let isDescending: Bool
        let isKey: Bool
        /// Whether the app defines the collation, even if SQLite has one of this name.
        let hasOwnCollation: Bool
    }

    let name: SchemaName
    let table: SchemaName
    let isUnique: Bool
    let parts: [Part]

    /// Creates the layout; `nil` for an index on expressions or with a condition, whose entries SQL cannot list without
    /// the text of the expressions or the condition.
    init?(
        _ name: SchemaName, isUnique: Bool, isPartial: Bool, _ reading: TableReading, _ connection: Connection
    ) throws {
        guard !isPartial else { return nil }
        var parts: [Part] = []
        var canBeListed = true
        let table = reading.table
        let registered = connection.registeredCollations.map(\.folded)
        try connection.forEachRow("PRAGMA index_xinfo(\(name))") { row in
            let position = try row.get(Int.self, at: 1)
            let sql: SQL
            switch (position, try row.get(SchemaName?.self, at: 2)) {
            case (-1, _):
                guard let rowid = reading.rowid else { return canBeListed = false }
                sql = "\(table).\(SQL(text: rowid))"
            case (_, let column?): sql = "\(table).\(column)"
            default: return canBeListed = false
            }
            let collation = try row.get(SchemaName?.self, at: 4) ?? "BINARY"
            parts.append(
                Part(
                    position: position < 0 ? nil : position, sql: sql, collation: collation,
                    isDescending: try row.get(Int.self, at: 3) != 0, isKey: try row.get(Int.self, at: 5) != 0,
                    hasOwnCollation: registered.contains(collation.folded)))
        }
        guard canBeListed, !parts.isEmpty else { return nil }
        self.name = name
        self.table = table
        self.isUnique = isUnique
        self.parts = parts
    }

    /// Returns a condition for a key, with which SQLite can look up its entry.
    ///
    /// - Parameters:
    ///   - values: The SQL of the columns of the entry, in order.
    ///   - keyOnly: Whether to omit the columns that are not part of the key, as those of a WITHOUT ROWID table are.
    func condition(_ values: [SQL], keyOnly: Bool = false) -> SQL {
        zip(parts, values).filter { $0.0.isKey || !keyOnly }.map { part, value in
            part.position == nil ? "\(part.sql) = \(value)" : "\(part.sql) COLLATE \(part.collation) IS \(value)"
        }.joined(by: " AND ")
    }

    /// Returns the order of the entries; `nil` if it is unknown for one of the collations.
    ///
    /// For NOCASE, SQLite converts texts of other encodings to UTF-8 before it compares them.
    ///
    /// - Parameter keyOnly: Whether to omit the columns that are not part of the key, so that a repeated key does not
    ///   ascend.
    func order(isUTF8: Bool, keyOnly: Bool = false) -> KeyOrder? {
        var order: [KeyOrder.Part] = []
        for part in parts where part.isKey || !keyOnly {
            guard !part.hasOwnCollation else { return nil }
            let collation: KeyOrder.Part.Collation
            switch part.collation.folded {
            case SchemaName("binary").folded: collation = .binary
            case SchemaName("nocase").folded where isUTF8: collation = .noCase
            default: return nil
            }
            order.append(KeyOrder.Part(collation, isDescending: part.isDescending, isKey: part.isKey))
        }
        return KeyOrder(order)
    }

    /// Returns the positions of the index's columns among those that ``TableReading/rows(rowid:_:)`` reads; `nil` if
    /// one of them is not stored or cannot be read together with the other columns.
    func columns(of reading: TableReading) -> [Int32]? {
        let hasRowID = reading.rowid != nil
        guard !(hasRowID && reading.isWide) else { return nil }
        var columns: [Int32] = []
        for part in parts {
            guard let position = part.position else {
                columns.append(0)
                continue
            }
            guard let place = reading.columns.stored.firstIndex(where: { $0.position == position }) else { return nil }
            columns.append(Int32(place + (hasRowID ? 1 : 0)))
        }
        return columns
    }
}
