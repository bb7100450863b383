import CipherSQLite

/// A row with values so long that they are compared piece by piece: SQLite would put each of them together in memory, of
/// either file and for either worker.
struct LongRow {
    let table: String
    /// The name of the rowid.
    let rowidName: String
    let rowid: Int64

    /// The first of these columns that differs; `nil` where the row is equal.
    ///
    /// - Parameter progress: Called now and then with the bytes since the last call; throws to end the comparison.
    func firstDifference(
        _ columns: [String], _ pair: ConnectionPair, _ progress: (Int64) throws -> Void
    ) throws -> String? {
        try columns.first { try !isEqual($0, pair, progress) }
    }

    private func isEqual(_ column: String, _ pair: ConnectionPair, _ progress: (Int64) throws -> Void) throws -> Bool {
        let type = query("typeof(\(SQL.quoted(identifier: column)))")
        guard try pair.original.value(String.self, type) == pair.copy.value(String.self, type) else { return false }
        if let original = try StoredBytes(table: table, column: column, rowid: rowid, of: pair.original),
            let copy = try StoredBytes(table: table, column: column, rowid: rowid, of: pair.copy)
        {
            return try original.equals(copy) { try progress(Int64($0)) }
        }
        let value = query(SQL.quoted(identifier: column))
        return try pair.original.withStatement(value) { original in
            try pair.copy.withStatement(value) { copy in
                var size: Int64 = 0
                guard try original.step(), try copy.step(), original.column(0, equals: copy, 0, size: &size) else {
                    return false
                }
                try progress(size)
                return true
            }
        }
    }

    private func query(_ expression: String) -> SQL {
        SQL(
            text: "SELECT \(expression) FROM \(SQL.quoted(identifier: table)) NOT INDEXED WHERE \(rowidName) = ?",
            values: [.integer(rowid)])
    }
}
