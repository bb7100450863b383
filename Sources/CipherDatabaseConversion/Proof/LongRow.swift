internal import CipherSQLite

/// A row with values so long that they are compared piece by piece.
///
/// Otherwise SQLite would assemble each of them in memory, for both files and both workers.
struct LongRow {
    let reading: TableReading
    /// The name of the rowid.
    let rowidName: String
    let rowid: Int64

    private var condition: SQL { "WHERE \(SQL(text: rowidName)) = \(rowid)" }

    /// Returns the first column that differs; `nil` if the row is equal.
    ///
    /// - Parameter progress: Called repeatedly with the number of bytes since the last call. It may throw to stop the
    ///   comparison.
    func firstDifference(_ pair: ConnectionPair, _ progress: (Int64) throws -> Void) throws -> TableColumns.Stored? {
        try reading.columns.stored.first { try !isEqual($0, pair, progress) }
    }

    /// Passes `body` the row with some of its values.
    func withRow(_ connection: Connection, only columns: Set<Int32>, _ body: (Statement) -> Void) throws {
        let query = reading.row(rowidName, condition, only: columns)
        try connection.withStatement(query, isKept: false) { statement in
            if try statement.step() { body(statement) }
        }
    }

    private func isEqual(
        _ column: TableColumns.Stored, _ pair: ConnectionPair, _ progress: (Int64) throws -> Void
    ) throws -> Bool {
        let type = reading.expression({ "typeof(\($0))" }, of: column, condition)
        guard try pair.original.value(String.self, type) == pair.copy.value(String.self, type) else { return false }
        let table = reading.table
        if let original = try StoredBytes(table: table, column: column.name, rowid: rowid, of: pair.original),
            let copy = try StoredBytes(table: table, column: column.name, rowid: rowid, of: pair.copy)
        {
            return try original.equals(copy) { try progress(Int64($0)) }
        }
        let value = reading.expression({ $0 }, of: column, condition)
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
}
