internal import CipherCatalog
internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// The comparison of one table's rows, by one worker or by two that walk towards each other.
///
/// One goes up from the lowest rowid, the other down from the highest, until they meet: so both cores are busy however
/// the rowids are spread. A table without a rowid is walked by the worker that comes first.
// Unchecked, and safe between threads: what two workers share is read and written only under `lock`, and the rest never
// changes.
package final class TableWalk: @unchecked Sendable {
    package enum Direction { case up, down }

    let reading: TableReading
    /// For each index, where its columns stand in the rows that are read.
    private let indexColumns: [[Int32]]
    private let path: String

    /// The rowid that a worker is about to compare, and what it has compared before.
    private struct Mark {
        var rowid: Int64
        var tally: Tally
    }

    private let lock = Lock()
    private var marks: [Direction: Mark] = [:]
    private var isTaken = false
    private var total: Tally?
    private var columnsWithForbiddenNull: Set<Int> = []

    /// The length from which values are compared piece by piece, in bytes.
    static let longValue: Int32 = 4 << 20
    /// Rows between two looks at the other worker, which must not wait for each other.
    private static let stride: Int64 = 1_024

    /// A walk through a table of an open database, whose path the errors name.
    ///
    /// - Parameter indexColumns: For each index whose entries are held against the rows, where its columns stand among
    ///   those that are read.
    package init(_ reading: TableReading, indexColumns: [[Int32]] = [], _ connection: Connection) {
        self.reading = reading
        self.indexColumns = indexColumns
        path = connection.path
    }

    /// Whether the rows were compared.
    var isSettled: Bool { lock.withLock { total != nil } }

    /// Takes what was found by other means, so that no one walks.
    ///
    /// - Parameter forbiddenNulls: The places, among the stored columns, of those that hold NULL although they are declared
    ///   NOT NULL.
    func settle(_ tally: Tally, forbiddenNulls: Set<Int>) {
        lock.withLock {
            isTaken = true
            total = tally
            columnsWithForbiddenNull = forbiddenNulls
        }
    }

    /// The number of rows, once the walk is over.
    package var rows: Int64 { lock.withLock { total?.rows ?? 0 } }

    /// What the rows call for in each index, once the walk is over.
    package var indexEntries: [Fingerprints] { lock.withLock { total?.entries ?? [] } }

    /// The columns that hold NULL although they are declared NOT NULL, once the walk is over.
    var forbiddenNulls: [SchemaName] {
        let columns = lock.withLock { columnsWithForbiddenNull }
        return columns.sorted().map { reading.columns.stored[$0].name }
    }

    /// Walks until the end or until the other worker is met.
    ///
    /// - Parameter progress: Called now and then with the bytes since the last call; throws to end the walk.
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
        // The rows since the last look: the other may have come past them meanwhile.
        var recent: [Int64] = []
        recent.reserveCapacity(Int(Self.stride))
        func isBeyond(_ rowid: Int64, _ mark: Mark) -> Bool {
            direction == .up ? rowid > mark.rowid : rowid < mark.rowid
        }
        let comparison = comparison(pair, hasRowID: true, progress)
        /// Comes to a row, and answers whether the other has compared it.
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
            // The other has compared all rows beyond its mark, though not yet the row of the mark.
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

    /// Compares row by row, in the order of the table's own b-tree, until the end or until `isOver` says so of a rowid.
    ///
    /// Returns whether it came to the end.
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
        // The row that the walk has come to, which is compared once it counts.
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
                // The original has a long value in the next row, or the copy in this one or after the original's last.
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
        _ = try comparison.run(reading.rows(rowid: hasRowID ? reading.rowid : nil)) { _ in
            comparison.recentFingerprints.removeAll(keepingCapacity: true)
            return false
        }
        if let rowid = reading.rowid, reading.isWide {
            // The rows of both files come in the order of their rowids, so each of these belongs to the row in its place.
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
