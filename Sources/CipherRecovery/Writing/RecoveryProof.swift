internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
internal import CipherSQLiteFormat

/// Compares a recovered database with a second reading of the damaged one, row by row.
///
/// Every row of the reading must be in its table with its rowid and values, and no table may have any other row: each
/// table must have as many rows as the reading found with distinct keys.
package final class RecoveryProof {
    private let connection: Connection
    private let recovered: RecoveredDatabase
    private let encoding: TextEncoding
    private var statements: [Int: Statement] = [:]
    /// The tables WITHOUT ROWID whose rows are not found by their keys, but by reading the table for each row.
    private var scanned: Set<Int> = []
    private var shortRecords: [Int: ShortRecord] = [:]
    private var apart: Statement?
    private var apartRows: Int64 = 0

    /// Creates a proof for a recovered database.
    ///
    /// - Parameter connection: A connection to the recovered database, with its real schema.
    package init(_ connection: Connection, _ recovered: RecoveredDatabase) {
        self.connection = connection
        self.recovered = recovered
        encoding = recovered.encoding
    }

    /// A difference between the recovered database and the second reading.
    package struct Difference: Error {
        package let detail: String
    }

    /// Compares one row of the reading.
    ///
    /// - Throws: ``Difference``; ``DatabaseError``.
    package func check(_ row: ReadRow) throws {
        switch row.destination {
        case .table(let number):
            if recovered.isDisplaced(row, in: number) {
                try checkApart(row)
            } else if !recovered.rebuilt.contains(number) {
                try check(row, in: number)
            }
        case .apart: try checkApart(row)
        }
    }

    /// The result: the recovered database has exactly the rows of the reading.
    package struct Outcome: Sendable {
        fileprivate init() {}
    }

    /// Compares the numbers of rows after every row was compared.
    ///
    /// - Throws: ``Difference``; ``DatabaseError``.
    package func finish() throws -> Outcome {
        statements = [:]
        apart = nil
        for (number, table) in recovered.forms.tables.enumerated() where !recovered.rebuilt.contains(number) {
            let count = try connection.value(Int.self, "SELECT count(*) FROM \(table.name)") ?? 0
            guard count == recovered.counts[number] else {
                throw Difference(
                    detail:
                        "the number of rows in table \(table.name) is \(count) instead of \(recovered.counts[number])")
            }
        }
        guard apartRows == recovered.apartRows else {
            throw Difference(
                detail:
                    "the number of rows without a table was \(recovered.apartRows) in the first pass, but "
                    + "\(apartRows) in the second"
            )
        }
        return Outcome()
    }

    private func check(_ row: ReadRow, in number: Int) throws {
        let table = recovered.forms.tables[number]
        // If columns use every name of the rowid, no statement can find a row by its rowid, and only the numbers of
        // rows are compared.
        guard let statement = try statements[number] ?? query(number) else { return }
        statements[number] = statement
        if table.isWithoutRowID {
            for place in table.key.indices { try statement.bind(row.values[place], at: Int32(place + 1), encoding) }
        } else {
            try statement.bind(row.rowid ?? 0, at: 1)
        }
        guard let difference = try difference(between: row, and: statement, table, number) else { return }
        // SQLite converts what it looks for to the column's type, which a key that was stored under an earlier
        // definition may not have. It then finds no row, or another one.
        guard table.isWithoutRowID, !scanned.contains(number) else { throw difference }
        scanned.insert(number)
        statements[number] = nil
        try check(row, in: number)
    }

    private func difference(
        between row: ReadRow, and statement: Statement, _ table: TableForm, _ number: Int
    ) throws -> Difference? {
        defer { statement.rewind() }
        guard try statement.step() else {
            return Difference(detail: "a row from page \(row.page) is not in table \(table.name)")
        }
        for place in table.stored.indices {
            let value: RecordValue
            if place == table.rowidValue {
                value = .integer(row.rowid ?? 0)
            } else if place < row.values.count {
                value = row.values[place]
            } else {
                value = try shortRecord(number).value(place)
            }
            guard statement.column(Int32(place), holds: value, encoding) else {
                return Difference(
                    detail:
                        "a row from page \(row.page) has a different value in "
                        + "\(table.name).\(table.column(place).schemaName)"
                )
            }
        }
        return nil
    }

    private func shortRecord(_ number: Int) throws -> ShortRecord {
        if let known = shortRecords[number] { return known }
        let record = try ShortRecord(of: recovered.forms.tables[number], encoding)
        shortRecords[number] = record
        return record
    }

    private func query(_ number: Int) throws -> Statement? {
        let table = recovered.forms.tables[number]
        let columns = table.stored.indices.map { "\(table.name).\(table.column($0).schemaName)" as SQL }.joined(
            by: ", ")
        if table.isWithoutRowID {
            // The key's collation may differ from the column's.
            let key = table.key.enumerated().map { place, part in
                let collation: SQL = part.collation.map { " COLLATE \($0)" } ?? ""
                // The sign removes the column's type from the comparison, and with it the use of the key's b-tree.
                let sign: SQL = scanned.contains(number) ? "+" : ""
                return "\(sign)\(table.name).\(table.column(place).schemaName) = ?\(collation)" as SQL
            }.joined(by: " AND ")
            return try Statement("SELECT \(columns) FROM \(table.name) WHERE \(key)", on: connection)
        }
        guard
            let rowid = table.rowidValue.map({ "\(table.name).\(table.column($0).schemaName)" as SQL })
                ?? table.columns.rowIDAlias.map({ SQL(text: $0) })
        else { return nil }
        return try Statement("SELECT \(columns) FROM \(table.name) NOT INDEXED WHERE \(rowid) = ?", on: connection)
    }

    private func checkApart(_ row: ReadRow) throws {
        apartRows += 1
        let statement = try apart ?? Statement("SELECT * FROM \(recovered.apartName) WHERE rowid = ?", on: connection)
        apart = statement
        try statement.bind(apartRows, at: 1)
        defer { statement.rewind() }
        guard try statement.step(), statement.integer(0) == Int64(row.page) else {
            throw Difference(detail: "a row from page \(row.page) is not in \(recovered.apartName)")
        }
        let first = Int32(ApartTable.fixedColumns)
        for (place, value) in row.values.prefix(statement.columnCount - Int(first)).enumerated() {
            guard statement.column(first + Int32(place), holds: value, encoding) else {
                throw Difference(detail: "a row from page \(row.page) has different values in \(recovered.apartName)")
            }
        }
    }
}
