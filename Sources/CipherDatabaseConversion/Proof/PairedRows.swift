internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// The counts of the rows and entries that one worker has compared in a table.
struct Tally: Sendable {
    private(set) var rows: Int64 = 0
    /// The entries that the rows require, by index.
    private(set) var entries: [Fingerprints]

    init(indexes: Int) {
        entries = Array(repeating: Fingerprints(), count: indexes)
    }

    /// Counts a row, with the fingerprints of its entries.
    mutating func add(_ fingerprints: ArraySlice<UInt64>) {
        addRow()
        for (index, fingerprint) in fingerprints.enumerated() { add(fingerprint, to: index) }
    }

    /// Counts a row whose entries are added separately.
    mutating func addRow() { rows += 1 }

    mutating func add(_ fingerprint: UInt64, to index: Int) { entries[index].add(fingerprint) }

    mutating func add(_ other: Tally) {
        rows += other.rows
        for index in entries.indices { entries[index].add(other.entries[index]) }
    }

    /// Removes rows, whose fingerprints are consecutive in a list.
    mutating func remove(_ numbers: [Int], _ fingerprints: [UInt64]) {
        rows -= Int64(numbers.count)
        for number in numbers {
            for index in entries.indices { entries[index].remove(fingerprints[number * entries.count + index]) }
        }
    }
}

/// Compares the rows of two statements in order, for one worker.
final class PairedRows {
    let pair: ConnectionPair
    private let indexColumns: [[Int32]]
    private let longRowColumns: Set<Int32>
    private let notNullColumns: [(number: Int, column: Int32)]
    private let differs: (String) -> StoreError
    private let columnName: (Int) -> String
    private let progress: (Int64) throws -> Void

    private(set) var tally: Tally
    /// The fingerprints of the rows since the caller last emptied the list, one for each index.
    var recentFingerprints: [UInt64] = []
    private(set) var forbiddenNulls: Set<Int> = []

    init(
        pair: ConnectionPair, indexColumns: [[Int32]], notNullColumns: [(Int, Int32)],
        differs: @escaping (String) -> StoreError, columnName: @escaping (Int) -> String,
        progress: @escaping (Int64) throws -> Void
    ) {
        self.pair = pair
        self.indexColumns = indexColumns
        self.notNullColumns = notNullColumns
        self.differs = differs
        self.columnName = columnName
        self.progress = progress
        longRowColumns = Set(indexColumns.joined()).union(notNullColumns.map(\.1))
        tally = Tally(indexes: indexColumns.count)
    }

    /// Compares row by row until the end, or until `stop` returns `true` for a row that has not been compared yet.
    ///
    /// Returns whether it reached the end.
    func run(_ sql: SQL, stop: (Statement) -> Bool) throws -> Bool {
        try pair.original.withStatement(sql, isKept: false) { original in
            try pair.copy.withStatement(sql, isKept: false) { copy in
                let width = Int32(original.columnCount)
                var bytes: Int64 = 0
                while try original.step() {
                    if stop(original) { return false }
                    guard try copy.step() else { throw differs("has fewer rows in the copy") }
                    for column in 0..<width {
                        guard original.column(column, equals: copy, column, size: &bytes) else {
                            throw differs("differs in column \(columnName(Int(column)))")
                        }
                    }
                    count(original)
                    if tally.rows % 1_024 == 0 || bytes > 1 << 22 {
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

    func compareLong(_ row: LongRow) throws {
        if let column = try row.firstDifference(pair, progress) {
            throw differs("differs in column \(column.name)")
        }
        try row.withRow(pair.original, only: longRowColumns, count)
    }

    /// Counts a row that is equal in both files.
    private func count(_ row: Statement) {
        let first = recentFingerprints.count
        for columns in indexColumns { recentFingerprints.append(row.fingerprint(of: columns)) }
        tally.add(recentFingerprints[first...])
        for (number, column) in notNullColumns where row.isNull(column) { forbiddenNulls.insert(number) }
    }
}
