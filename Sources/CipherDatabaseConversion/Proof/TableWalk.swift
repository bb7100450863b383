internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
package import CipherSQLiteFormat
internal import CipherSystemFiles

/// The comparison of one table's rows, by one worker or by two workers that walk towards each other.
///
/// One worker goes up from the lowest rowid and the other goes down from the highest, until they meet. Both cores are
/// therefore busy however the rowids are distributed. A table without a rowid is walked by the worker that arrives
/// first.
// Unchecked but safe across threads: state that two workers share is accessed only under `lock`, and the rest never
// changes.
package final class TableWalk: @unchecked Sendable {
    package enum Direction { case up, down }

    let reading: TableReading
    /// The positions of each index's columns in the rows that are read.
    private let indexColumns: [[Int32]]
    /// The positions of the key's columns among those that are read, and the order of the rows by these; `nil` for a
    /// table with rowids, or if the order is unknown.
    private let key: (columns: [Int32], order: KeyOrder)?
    private let path: String

    /// The rowid that a worker is about to compare, and the counts of what it has compared before.
    private struct Mark {
        var rowid: Int64
        var tally: Tally
    }

    private let lock = Lock()
    private var marks: [Direction: Mark] = [:]
    private var isTaken = false
    private var total: Tally?
    private var columnsWithForbiddenNull: Set<Int> = []
    private var areRowsOrdered = true

    /// The length in bytes above which values are compared piece by piece.
    static let longValue: Int32 = 4 << 20
    /// The number of rows between two looks at the other worker's mark.
    ///
    /// The workers must not wait for each other.
    private static let stride: Int64 = 1_024

    /// Creates a walk through a table of an open database, whose path the errors contain.
    ///
    /// - Parameters:
    ///   - indexColumns: For each index whose entries are compared with the rows, the positions of its columns among
    ///     those that are read.
    ///   - key: For a WITHOUT ROWID table, the positions of the columns of its key among those that are read, and the
    ///     order of its rows; `nil` if the order is unknown.
    package init(
        _ reading: TableReading, indexColumns: [[Int32]] = [], key: (columns: [Int32], order: KeyOrder)? = nil,
        _ connection: Connection
    ) {
        self.reading = reading
        self.indexColumns = indexColumns
        self.key = key
        path = connection.path
    }

    /// Whether the rows have been compared.
    var isSettled: Bool { lock.withLock { total != nil } }

    /// Adopts results that were obtained in another way, so that no worker walks.
    ///
    /// - Parameters:
    ///   - forbiddenNulls: The positions, among the stored columns, of the columns that contain NULL although they are
    ///     declared NOT NULL.
    ///   - isOrdered: Whether the keys of a WITHOUT ROWID table ascend, as far as their order is known.
    func settle(_ tally: Tally, forbiddenNulls: Set<Int>, isOrdered: Bool) {
        lock.withLock {
            isTaken = true
            areRowsOrdered = isOrdered
            total = tally
            columnsWithForbiddenNull = forbiddenNulls
        }
    }

    /// The number of rows, once the walk has ended.
    package var rows: Int64 { lock.withLock { total?.rows ?? 0 } }

    /// Whether the keys of a WITHOUT ROWID table ascend, as far as their order is known, once the walk has ended.
    var isOrdered: Bool { lock.withLock { areRowsOrdered } }

    /// The entries that the rows require in each index, once the walk has ended.
    package var indexEntries: [Fingerprints] { lock.withLock { total?.entries ?? [] } }

    /// The columns that contain NULL although they are declared NOT NULL, once the walk has ended.
    var forbiddenNulls: [SchemaName] {
        let columns = lock.withLock { columnsWithForbiddenNull }
        return columns.sorted().map { reading.columns.stored[$0].name }
    }

    /// Walks until the end or until it meets the other worker.
    ///
    /// - Parameter progress: Called repeatedly with the number of bytes since the last call. It may throw to stop the
    ///   walk.
    package func walk(_ direction: Direction, _ pair: ConnectionPair, progress: @escaping (Int64) throws -> Void) throws
    {
        if let rowid = reading.rowid, !reading.isWide {
            guard lock.withLock({ total == nil }) else { return }
            try walk(direction, rowid, pair, progress)
        } else {
            let isFirst = lock.withLock {
                defer { isTaken = true }
                return !isTaken
            }
            if isFirst { try walkAlone(pair, progress) }
        }
    }

    private func walk(
        _ direction: Direction, _ rowid: String, _ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void
    ) throws {
        var met: Mark?
        // The rows since the last look, which the other worker may have passed meanwhile.
        var recent: [Int64] = []
        recent.reserveCapacity(Int(Self.stride))
        func isBeyond(_ rowid: Int64, _ mark: Mark) -> Bool {
            direction == .up ? rowid > mark.rowid : rowid < mark.rowid
        }
        let comparison = comparison(pair, hasRowID: true, progress)
        /// Handles the arrival at a row, and returns whether the other worker has already compared it.
        func isOver(at here: Int64) -> Bool {
            if comparison.tally.rows % Self.stride == 0 {
                let look = lock.withLock { () -> (isOver: Bool, other: Mark?) in
                    marks[direction] = Mark(rowid: here, tally: comparison.tally)
                    return (total != nil, marks[direction == .up ? .down : .up])
                }
                if look.isOver { return true }
                met = look.other
                if let met, isBeyond(here, met) { return true }
                recent.removeAll(keepingCapacity: true)
                comparison.recentFingerprints.removeAll(keepingCapacity: true)
            }
            // The other worker has compared all rows beyond its mark, but not yet the row at the mark.
            if let met, isBeyond(here, met) { return true }
            recent.append(here)
            return false
        }
        let isWhole = try compare(direction, rowid, comparison, isOver)
        var tally = comparison.tally
        if !isWhole, let met {
            let both = recent.indices.filter { isBeyond(recent[$0], met) }
            tally.remove(both, comparison.recentFingerprints)
            tally.add(met.tally)
        }
        finish(tally, comparison)
    }

    /// Compares row by row, in the order of the table's own b-tree, until the end or until `isOver` returns `true` for
    /// a rowid.
    ///
    /// Returns whether it reached the end.
    private func compare(
        _ direction: Direction, _ rowid: String, _ comparison: PairedRows, _ isOver: (Int64) -> Bool
    ) throws -> Bool {
        let pair = comparison.pair
        func beyond(_ last: Int64?) -> SQL {
            let (name, order): (SQL, SQL) = (SQL(text: rowid), direction == .up ? "ASC" : "DESC")
            guard let last else { return "ORDER BY \(name) \(order)" }
            return direction == .up
                ? "WHERE \(name) > \(last) ORDER BY \(name) \(order)"
                : "WHERE \(name) < \(last) ORDER BY \(name) \(order)"
        }
        // The row at which the walk has arrived. It has been compared once it is counted.
        var here: Int64?
        var arrivals: Int64 = 0
        func comesTo(_ row: Int64) -> Bool {
            here = row
            arrivals += 1
            return isOver(row)
        }
        while true {
            do {
                return try pair.refusingValues(longerThan: Self.longValue) {
                    try comparison.run(reading.rows(rowid: rowid, beyond(here))) { comesTo($0.integer(0)) }
                }
            } catch let error as DatabaseError where error.isTooBig {
                // The original has a long value in the next row, or the copy has one in this row or after the
                // original's last row.
                if arrivals == comparison.tally.rows {
                    guard let next = try pair.original.value(Int64.self, reading.rowids(rowid, beyond(here))) else {
                        throw differs("has more rows in the copy")
                    }
                    if comesTo(next) { return false }
                }
                guard let here else { throw error }
                try comparison.compareLong(LongRow(reading: reading, rowidName: rowid, rowid: here))
            }
        }
    }

    private func walkAlone(_ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void) throws {
        let hasRowID = reading.rowid != nil && !reading.isWide
        let comparison = comparison(pair, hasRowID: hasRowID, progress)
        var order = key?.order
        _ = try comparison.run(reading.rows(rowid: hasRowID ? reading.rowid : nil)) { row in
            if let key, order?.take(key.columns.map { RecordValue(row, $0) }) != .ascends {
                lock.withLock { areRowsOrdered = false }
            }
            comparison.recentFingerprints.removeAll(keepingCapacity: true)
            return false
        }
        if let rowid = reading.rowid, reading.isWide {
            // Both files return their rows in the order of the rowids, so each rowid belongs to the row at the same
            // position.
            _ = try self.comparison(pair, isCounted: false, hasRowID: false, progress)
                .run(reading.rowids(rowid, "ORDER BY \(SQL(text: rowid))")) { _ in false }
        }
        finish(comparison.tally, comparison)
    }

    private func comparison(
        _ pair: ConnectionPair, isCounted: Bool = true, hasRowID: Bool, _ progress: @escaping (Int64) throws -> Void
    ) -> PairedRows {
        let offset = hasRowID ? 1 : 0
        let notNull = reading.columns.stored.indices.filter { reading.columns.stored[$0].isNotNull }
        return PairedRows(
            pair: pair, indexColumns: isCounted ? indexColumns : [],
            notNullColumns: isCounted ? notNull.map { ($0, Int32($0 + offset)) } : [],
            differs: { [self] in differs($0) },
            columnName: { [reading] column in
                let index = column - offset
                return reading.columns.stored.indices.contains(index)
                    ? reading.columns.stored[index].name.description : "rowid"
            }, progress: progress)
    }

    private func finish(_ tally: Tally, _ comparison: PairedRows) {
        lock.withLock {
            if total == nil { total = tally }
            columnsWithForbiddenNull.formUnion(comparison.forbiddenNulls)
        }
    }

    private func differs(_ how: String) -> StoreError { .proof(path, "table \(reading.table) \(how)") }
}
