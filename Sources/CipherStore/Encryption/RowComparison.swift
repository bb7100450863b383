import CipherSQLite

/// Compares one table of two databases: every row in order, with its rowid, each value by storage class and bytes.
struct RowComparison {
    let table: String
    let columns: TableColumns
    let path: String

    /// SQLite allows 2,000 columns in a result; wider tables are compared in slices.
    private static let sliceWidth = 1_900

    /// Compares, and calls `progress` now and then with the bytes since the last call.
    ///
    /// - Returns: The number of rows.
    func run(_ left: Connection, _ right: Connection, progress: (Int64) throws -> Void) throws -> Int64 {
        var rows: Int64 = 0
        let names = columns.stored.map { SQL.quoted(identifier: $0) }
        for first in stride(from: 0, to: max(names.count, 1), by: Self.sliceWidth) {
            let slice = names[first..<min(first + Self.sliceWidth, names.count)]
            rows = try compare(left, right, Array(slice), progress)
        }
        return rows
    }

    private func compare(
        _ left: Connection, _ right: Connection, _ names: [String], _ progress: (Int64) throws -> Void
    ) throws -> Int64 {
        let rowid = try rowidColumn(left)
        let list = (rowid + names).joined(separator: ", ")
        // In the order of the table's own b-tree: an index would not do, it has no rowid order and may be damaged.
        let sql = SQL(text: "SELECT \(list) FROM \(SQL.quoted(identifier: table)) NOT INDEXED")
        let width = Int32(rowid.count + names.count)
        return try left.withStatement(sql) { leftRow in
            try right.withStatement(sql) { rightRow in
                var rows: Int64 = 0
                var bytes: Int64 = 0
                while true {
                    let more = try leftRow.step()
                    guard try rightRow.step() == more else { throw differs("the number of rows", rows) }
                    guard more else { break }
                    for column in 0..<width {
                        guard leftRow.column(column, equals: rightRow, column, size: &bytes) else {
                            throw differs("column \(leftRow.columnName(Int(column)))", rows)
                        }
                    }
                    rows += 1
                    if rows & 0xfff == 0 || bytes > 1 << 22 {
                        try progress(bytes)
                        bytes = 0
                    }
                }
                try progress(bytes)
                return rows
            }
        }
    }

    /// The rowid, unless the table is WITHOUT ROWID or hides it.
    private func rowidColumn(_ connection: Connection) throws -> [String] {
        guard let alias = columns.rowidAlias else { return [] }
        do {
            _ = try Statement("SELECT \(alias) FROM \(SQL.quoted(identifier: table)) LIMIT 0", on: connection)
            return [alias]
        } catch let error as DatabaseError where error.message.contains("no such column") {
            return []
        }
    }

    private func differs(_ what: String, _ row: Int64) -> StoreError {
        .proof(path, "\(what) of table \(table) at row \(row + 1)")
    }
}
