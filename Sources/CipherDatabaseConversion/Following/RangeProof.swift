internal import CipherErrors
internal import CipherSQLite

/// Proves that the changed rows are equal in a database and its copy.
///
/// It reads the rows by the position of their columns, and shares no connection, key object or SQL text with the code
/// that copied them.
struct RangeProof {
    let pair: ConnectionPair

    /// Compares the rows.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed`, naming the first difference.
    func run(_ changes: [TreeMap.Change], checkCancellation: @escaping () throws -> Void) throws {
        for change in changes {
            let table = change.table.name
            let key =
                try change.table.isKeyed
                ? ListedIndex.all(of: table, pair.original).first(where: \.isKey)?.name : nil
            let reading = try TableReading(
                table, key: key, mayLackRowID: change.table.isKeyed, pair.original)
            try reading.check(root: Int64(change.table.root), pair.original)
            guard let ranges = change.ranges, let rowid = reading.rowid, !reading.isWide else {
                try TableWalk(reading, pair.original).walk(.up, pair) { _ in try checkCancellation() }
                continue
            }
            for range in ranges {
                let condition: SQL = "\(range.condition(SQL(text: rowid))) ORDER BY \(SQL(text: rowid))"
                let rows = PairedRows(
                    pair: pair, indexColumns: [], notNullColumns: [],
                    differs: { StoreError.proof(pair.original.path, "table \(table) \($0)") },
                    columnName: { $0 == 0 ? "rowid" : "\($0)" }, progress: { _ in try checkCancellation() })
                _ = try rows.run(reading.rows(rowid: rowid, condition)) { _ in false }
            }
        }
    }
}
