internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Rows and entries that SQLCipher also reads, from a tree whose records were compared.
///
/// They are chosen so that SQLCipher reads every interior page, the last page and those around the bytes that SQLite
/// locks, one in a hundred leaves and one in a hundred chains of overflow pages. This proves that SQLCipher's own
/// derivation of the key opens what the page reader opened. Rows and entries are looked up by their keys, so a lookup
/// passes through the interior pages as the app's lookups will.
struct RecordSamples {
    private let tree: RecordTree
    /// The maximum number of steps of SQLite's virtual machine for a search.
    ///
    /// A search takes several steps for each of up to 2,000 columns.
    private static let mostSteps = 200_000

    init(_ tree: RecordTree) {
        self.tree = tree
    }

    /// Compares the samples.
    ///
    /// - Returns: `false` if SQLite cannot look up the samples in the original.
    /// - Throws: ``StoreError`` with the code `proofFailed` if a sample differs in the copy.
    func areEqual(_ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void) throws -> Bool {
        switch tree.content {
        case .rows(let walk, let layout): try areEqual(walk.reading, layout, pair, progress)
        case .entries(let index): try areEntriesEqual(index, pair, progress)
        case .other: true
        }
    }

    private func areEqual(
        _ reading: TableReading, _ layout: RecordLayout, _ pair: ConnectionPair,
        _ progress: @escaping (Int64) throws -> Void
    ) throws -> Bool {
        let samples = tree.samples
        let name = "table \(reading.table)"
        guard let rowid = reading.rowid else {
            guard let key = layout.key else { return false }
            let queries = samples.entries.map { reading.rows("WHERE \(key.condition($0, keyOnly: true))") }
            return try areEqual(queries, name, pair, progress)
        }
        func isRow(_ number: Int64) -> SQL { "WHERE \(SQL(text: rowid)) = \(number)" }
        guard try areEqual(samples.leaves.map { reading.rowids(rowid, isRow($0)) }, name, pair, progress) else {
            return false
        }
        for row in samples.rows {
            do {
                let query = reading.rows(rowid: rowid, isRow(row))
                let isFound = try pair.refusingValues(longerThan: TableWalk.longValue) {
                    try isEqual(query, name, pair, progress)
                }
                guard isFound else { return false }
            } catch let error as DatabaseError where error.isTooBig {
                let row = LongRow(reading: reading, rowidName: rowid, rowid: row)
                guard try row.firstDifference(pair, progress) == nil else { throw differs(name, pair) }
            }
        }
        return true
    }

    private func areEntriesEqual(
        _ index: IndexComparison, _ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void
    ) throws -> Bool {
        let queries = tree.samples.entries.map(index.lookup)
        // If an index uses a column computed by an app-defined function, it holds the results: they are read, not
        // computed.
        return try pair.original.standingInForAbsentFunctions {
            try pair.copy.standingInForAbsentFunctions {
                try areEqual(queries, "index \(index.layout.name)", pair, progress)
            }
        }
    }

    private func areEqual(
        _ queries: [SQL], _ name: String, _ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void
    ) throws -> Bool {
        guard let first = queries.first else { return true }
        do {
            // A query that scans the whole tree would practically never end if it ran for every sample.
            guard try pair.original.looksUp(first), try pair.copy.looksUp(first) else { return false }
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            return false
        }
        for query in queries {
            // Entries with equal keys, such as NULL in a PRIMARY KEY, are scanned one by one.
            let isFound = try pair.original.finishing(within: Self.mostSteps) {
                try pair.copy.finishing(within: Self.mostSteps) { try isEqual(query, name, pair, progress) }
            }
            guard case .some(.some(true)) = isFound else { return false }
        }
        return true
    }

    /// Returns whether a query has a result in the original.
    ///
    /// The result must be the same in the copy.
    private func isEqual(
        _ query: SQL, _ name: String, _ pair: ConnectionPair, _ progress: (Int64) throws -> Void
    ) throws -> Bool {
        var rows = 0
        var bytes: Int64 = 0
        try pair.original.withStatement(query) { original in
            try pair.copy.withStatement(query) { copy in
                let width = Int32(original.columnCount)
                while try original.step() {
                    guard try copy.step() else { throw differs(name, pair) }
                    for column in 0..<width {
                        guard original.column(column, equals: copy, column, size: &bytes) else {
                            throw differs(name, pair)
                        }
                    }
                    rows += 1
                }
                guard try !copy.step() else { throw differs(name, pair) }
            }
        }
        // The bytes were counted before.
        try progress(0)
        return rows > 0
    }

    private func differs(_ name: String, _ pair: ConnectionPair) -> StoreError {
        .proof(pair.original.path, "a lookup in \(name) returns a different result in the copy")
    }
}

extension Connection {
    /// Returns whether SQLite answers a query by a search in a b-tree.
    ///
    /// Source: SQLite, "EXPLAIN QUERY PLAN", section 1.1.
    fileprivate func looksUp(_ query: SQL) throws -> Bool {
        var steps: [String] = []
        try forEachRow("EXPLAIN QUERY PLAN \(query)") { steps.append(try $0.get(String.self, at: 3)) }
        return !steps.isEmpty && steps.allSatisfy { $0.hasPrefix("SEARCH") || $0.hasPrefix("CO-ROUTINE") }
    }
}
