import CipherSQLite

/// The comparison of one table's rows, by one worker or by two that walk towards each other.
///
/// One goes up from the lowest rowid, the other down from the highest, until they meet: so both cores are busy however
/// the rowids are spread. A table without a rowid is walked by the worker that comes first.
final class TableWalk: @unchecked Sendable {
    // What two workers share is read and written only under `lock`; the rest never changes.
    enum Direction { case up, down }

    private let name: String
    private let columns: TableColumns
    /// The name of the rowid, where it can be asked for.
    let rowid: String?
    private let path: String

    /// The rowid that a worker is about to compare, and how many it has compared before.
    private struct Mark {
        var rowid: Int64
        var count: Int64
    }

    private let lock = Lock()
    private var marks: [Direction: Mark] = [:]
    private var isTaken = false
    private var total: Int64?

    /// SQLite allows 2,000 columns in a result; wider tables are compared in slices.
    private static let sliceWidth = 1_900
    /// The length from which values are compared piece by piece, in bytes.
    private static let longValue: Int32 = 4 << 20
    /// Rows between two looks at the other worker, which must not wait for each other.
    private static let stride: Int64 = 1_024

    /// A walk through the table of this name in an open database, whose path the errors name.
    ///
    /// - Parameter mayLackRowID: Whether it may be WITHOUT ROWID, which only a statement of its own tells.
    init(_ name: String, mayLackRowID: Bool = true, _ connection: Connection) throws {
        self.name = name
        path = connection.path
        columns = try TableColumns(name, schema: "main", connection)
        rowid = try mayLackRowID ? Self.rowid(of: name, columns, connection) : columns.rowidAlias
    }

    /// The number of rows, once the walk is over.
    var rows: Int64 { lock.withLock { total ?? 0 } }

    /// Walks until the end or until the other worker is met.
    ///
    /// - Parameter progress: Called now and then with the bytes since the last call; throws to end the walk.
    func walk(_ direction: Direction, _ pair: ConnectionPair, progress: (Int64) throws -> Void) throws {
        let names = columns.stored.map { SQL.quoted(identifier: $0) }
        if let rowid, names.count <= Self.sliceWidth {
            guard lock.withLock({ total == nil }) else { return }
            try walk(direction, rowid, names, pair, progress)
        } else {
            let isFirst = lock.withLock {
                defer { isTaken = true }
                return !isTaken
            }
            if isFirst { try walkAlone(names, pair, progress) }
        }
    }

    private func walk(
        _ direction: Direction, _ rowid: String, _ names: [String], _ pair: ConnectionPair,
        _ progress: (Int64) throws -> Void
    ) throws {
        var met: Mark?
        // The rowids since the last look: the other may have come past them meanwhile.
        var recent: [Int64] = []
        recent.reserveCapacity(Int(Self.stride))
        func isBeyond(_ rowid: Int64, _ mark: Mark) -> Bool {
            direction == .up ? rowid > mark.rowid : rowid < mark.rowid
        }
        /// Comes to a row, and answers whether the other has compared it.
        func isOver(at here: Int64, _ count: Int64) -> Bool {
            if count % Self.stride == 0 {
                let look = lock.withLock { () -> (isOver: Bool, other: Mark?) in
                    marks[direction] = Mark(rowid: here, count: count)
                    return (total != nil, marks[direction == .up ? .down : .up])
                }
                if look.isOver { return true }
                met = look.other
                if let met, isBeyond(here, met) { return true }
                recent.removeAll(keepingCapacity: true)
            }
            // The other has compared all rows beyond its mark, though not yet the row of the mark.
            if let met, isBeyond(here, met) { return true }
            recent.append(here)
            return false
        }
        let end = try compare(direction, rowid, names, pair, progress, stop: isOver)
        let both = met.map { mark in Int64(recent.reduce(0) { $0 + (isBeyond($1, mark) ? 1 : 0) }) } ?? 0
        lock.withLock {
            if total == nil { total = end.isWhole ? end.count : end.count - both + (met?.count ?? 0) }
        }
    }

    /// Compares row by row, in the order of the table's own b-tree, until the end or until `stop` says so of a rowid.
    private func compare(
        _ direction: Direction, _ rowid: String, _ names: [String], _ pair: ConnectionPair,
        _ progress: (Int64) throws -> Void, stop: (Int64, Int64) -> Bool
    ) throws -> (count: Int64, isWhole: Bool) {
        func query(_ names: [String], beyond last: Int64?) -> SQL {
            let bound = last == nil ? "" : "WHERE \(rowid) \(direction == .up ? ">" : "<") ? "
            let order = direction == .up ? "ASC" : "DESC"
            return SQL(
                text: "SELECT \(names.joined(separator: ", ")) FROM \(SQL.quoted(identifier: name)) NOT INDEXED "
                    + "\(bound)ORDER BY \(rowid) \(order)",
                values: last.map { [.integer($0)] } ?? [])
        }
        var count: Int64 = 0
        // The row that the walk has come to, which is compared once it counts.
        var here: Int64?
        var arrivals: Int64 = 0
        func isOver(at row: Int64, _ count: Int64) -> Bool {
            here = row
            arrivals += 1
            return stop(row, count)
        }
        while true {
            do {
                let sql = query([rowid] + names, beyond: here)
                let isWhole = try pair.refusingValues(longerThan: Self.longValue) {
                    try compare(sql, pair, &count, progress) { isOver(at: $0.integer(0), $1) }
                }
                return (count, isWhole)
            } catch let error as DatabaseError where error.isTooBig {
                // The original has a long value in the next row, or the copy in this one or behind the original's last.
                if arrivals == count {
                    guard let next = try pair.original.value(Int64.self, query([rowid], beyond: here)) else {
                        throw differs("has more rows in the copy")
                    }
                    if isOver(at: next, count) { return (count, false) }
                }
                guard let here else { throw error }
                let row = LongRow(table: name, rowidName: rowid, rowid: here)
                if let column = try row.firstDifference(columns.stored, pair, progress) {
                    throw differs("differs in column \(column)")
                }
                count += 1
            }
        }
    }

    private func walkAlone(_ names: [String], _ pair: ConnectionPair, _ progress: (Int64) throws -> Void) throws {
        var rows: Int64 = 0
        for first in Swift.stride(from: 0, to: max(names.count, 1), by: Self.sliceWidth) {
            let slice = (rowid.map { [$0] } ?? []) + names[first..<min(first + Self.sliceWidth, names.count)]
            let list = slice.joined(separator: ", ")
            let sql = SQL(text: "SELECT \(list) FROM \(SQL.quoted(identifier: name)) NOT INDEXED")
            rows = 0
            _ = try compare(sql, pair, &rows, progress) { _, _ in false }
        }
        lock.withLock { total = rows }
    }

    /// Compares row by row until the end, or until `stop` says so of a row that is not compared yet.
    ///
    /// Returns whether it came to the end.
    private func compare(
        _ sql: SQL, _ pair: ConnectionPair, _ count: inout Int64, _ progress: (Int64) throws -> Void,
        stop: (Statement, Int64) -> Bool
    ) throws -> Bool {
        try pair.original.withStatement(sql, isKept: false) { original in
            try pair.copy.withStatement(sql, isKept: false) { copy in
                let width = Int32(original.columnCount)
                var bytes: Int64 = 0
                while try original.step() {
                    if stop(original, count) { return false }
                    guard try copy.step() else { throw differs("has fewer rows in the copy") }
                    for column in 0..<width {
                        guard original.column(column, equals: copy, column, size: &bytes) else {
                            throw differs("differs in column \(original.columnName(Int(column)))")
                        }
                    }
                    count += 1
                    if count % Self.stride == 0 || bytes > 1 << 22 {
                        try progress(bytes)
                        bytes = 0
                    }
                }
                guard try !copy.step() else { throw differs("has more rows in the copy") }
                try progress(bytes)
                return true
            }
        }
    }

    private func differs(_ how: String) -> StoreError { .proof(path, "table \(name) \(how)") }

    /// A name for the rowid; `nil` for a table WITHOUT ROWID, or whose columns have taken all its names.
    private static func rowid(of table: String, _ columns: TableColumns, _ connection: Connection) throws -> String? {
        guard let alias = columns.rowidAlias else { return nil }
        do {
            _ = try Statement("SELECT \(alias) FROM \(SQL.quoted(identifier: table)) LIMIT 0", on: connection)
            return alias
        } catch let error as DatabaseError where error.message.contains("no such column") {
            return nil
        }
    }
}
