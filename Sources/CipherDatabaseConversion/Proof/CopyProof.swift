internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Proves that the copy is the original, encrypted.
///
/// It shares no connection, key object or plan with the builder.
///
/// Two workers read both files completely: every row of every table and every entry of every index, bit by bit and in
/// order. Each page of the copy is authenticated as it is read: by ``RecordProof``, or by SQLCipher in comparisons with
/// SQL. Rows are compared by the position of their columns, and each table and index is identified by its root page, so
/// a confusion of names cannot hide a difference.
package struct CopyProof {
    let original: ProofConnection
    /// The copy, opened with the key that the provider returned when it was asked again.
    let copy: ProofConnection
    /// The copy, opened with the derived key, so that the second worker need not wait for a derivation.
    let copyWithDerivedKey: ProofConnection
    /// Whether the builder filled the copy's indexes from its rows, because the original's are damaged.
    var hasRebuiltIndexes = false
    /// How the tables and indexes are compared.
    let reader: ProofReader
    /// Whether SQLite's own check reads the original even if the comparison covers the whole copy.
    var checksOriginal = false
    let observer: UpgradeObserver

    package init(
        original: ProofConnection, copy: ProofConnection, copyWithDerivedKey: ProofConnection,
        hasRebuiltIndexes: Bool = false, reader: ProofReader = .records, observer: UpgradeObserver
    ) {
        self.original = original
        self.copy = copy
        self.copyWithDerivedKey = copyWithDerivedKey
        self.hasRebuiltIndexes = hasRebuiltIndexes
        self.reader = reader
        self.observer = observer
    }

    /// The result of the comparison.
    package struct Outcome {
        package var tables = 0
        package var rows: Int64 = 0
        /// The number of tables and indexes that were compared with SQL, because their records or their files do not
        /// suffice.
        package var comparedBySQL: Int
        /// The faults of the original that may matter to the app.
        package var warnings: [String] = []
        /// The faults of the original's indexes, free list and pointer map that the copy does not have.
        var healed: [String] = []
        /// The other faults of the original that the copy does not have: the rows that SQLite reads may be wrong.
        var doubts: [String] = []
        /// Whether each page of the original is known to have exactly one use, and each b-tree page to fill its cell
        /// content area.
        var accountsForOriginal = false
        /// The names of the indexes that had such faults.
        var healedIndexes: Set<String> = []
        /// Whether an index may contain results of SQLite's own `lower`, `upper` or NOCASE.
        var usesOwnCase = false

        fileprivate init(comparedBySQL: Int) { self.comparedBySQL = comparedBySQL }
    }

    /// Indexes of the original that do not match its rows.
    ///
    /// A copy must not adopt them.
    struct DamagedIndexes: Error {
        /// The faults of the indexes.
        let complaints: [String]
        /// The names of the indexes.
        let indexes: Set<String>
    }

    private struct Plan: Sendable {
        var walks: [TableWalk] = []
        /// The indexes of each walk's table.
        var indexes: [[IndexComparison]] = []
        /// The root page of each table in the original, and the layout of its records.
        var records: [(root: Int64, layout: RecordLayout?)] = []
        /// The tables whose definition may forbid values that they contain.
        var constrained: [SchemaName] = []
        /// Whether parts remain that only SQLite's own check can compare.
        var needsIntegrityCheck = false
        /// The tables with an index that only SQLite's own check compares with the rows.
        var uncompared: [SchemaName] = []

        /// The number of tables and indexes that have not been compared yet.
        var unsettled: Int {
            walks.filter { !$0.isSettled }.count + indexes.joined().filter { !$0.isSettled }.count
        }

        var tables: [RecordProof.Table] {
            walks.indices.map { number in
                RecordProof.Table(
                    walk: walks[number], root: records[number].root, layout: records[number].layout,
                    indexes: indexes[number])
            }
        }
    }

    /// Compares the copy with the original.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed`, naming the first difference, or `corrupt` if the original
    ///   is so damaged that it cannot be copied; ``DamagedIndexes`` if a copy with rebuilt indexes is needed.
    package func run() throws -> Outcome {
        let observer = observer
        let source = try original.open { observer.isCancelled }
        defer { source.close() }
        do {
            return try compare(source)
        } catch let error as StoreError where error.code == .proofFailed {
            // The original may have rows out of order, for example, while the copy has them in order.
            let found = try IntegrityComplaints(source, tables: source.tablesWithRoots())
            let complaints = found.kinds.keys.sorted()
            let aboutIndexes = complaints.filter(IntegrityComplaints.mayBeAboutIndex)
            let reasons = aboutIndexes.map(found.description) + found.unchecked
            if !hasRebuiltIndexes, !reasons.isEmpty {
                throw DamagedIndexes(complaints: reasons, indexes: found.indexes)
            }
            guard let complaint = complaints.first else { throw error }
            throw StoreError(
                .corrupt, path: original.path,
                "the original is damaged, so the copy does not match it (integrity_check: "
                    + "\(found.description(of: complaint)))",
                advice: StoreError.damageAdvice,
                changed: .nothing)
        }
    }

    private func compare(_ source: Connection) throws -> Outcome {
        let began = ContinuousClock.now
        // Without a log, no connection can write to the original while this transaction lasts.
        if !source.isInTransaction { try source.pinSnapshot() }
        let plan = try makePlan(source)
        let progress = ProofProgress(observer)
        func advance(_ bytes: Int64) throws {
            progress.add(bytes)
            progress.show()
            try observer.checkCancellation()
        }
        let records =
            try reader == .records
            ? RecordProof(plan.tables, original: original, copy: copyWithDerivedKey, source) : nil
        // The comparison of a small file ends before a second worker could start.
        let isLarge = try FileSystem.size(original.path) ?? 0 >= 1 << 20
        let recordHelper = (isLarge ? records : nil).map { records in
            BackgroundTask("record proof") { cancellation in
                try records.work { try progress.add($0, checking: cancellation) }
            }
        }
        defer { recordHelper?.cancel() }
        var outcome = Outcome(comparedBySQL: plan.unsettled)
        var rowHelper = records == nil ? self.rowHelper(plan, progress) : nil
        defer { rowHelper?.cancel() }
        // SQLCipher derives the key itself here, which proves that the provider's own key opens the file.
        let observer = observer
        let pair = ConnectionPair(original: source, copy: try copy.open { observer.isCancelled })
        defer { pair.copy.close() }
        try compareSchemaAndHeader(plan, pair)
        if let records {
            try records.work(advance)
            try recordHelper?.wait()
            try records.settle(pair, advance)
            outcome.accountsForOriginal = try records.accountsForOriginal()
            // Tables and indexes are counted before the second worker starts, because that worker settles them.
            outcome.comparedBySQL = plan.unsettled
            if outcome.comparedBySQL > 0 { rowHelper = self.rowHelper(plan, progress) }
        }
        try Self.work(plan, .up, pair, progress: advance)
        try rowHelper?.wait()
        try judge(plan, pair, since: began, &outcome)
        try source.checkAuthenticity()
        return outcome
    }

    /// Starts the second worker of the comparison with SQL.
    private func rowHelper(_ plan: Plan, _ progress: ProofProgress) -> BackgroundTask<Void> {
        BackgroundTask("proof") { [original, copyWithDerivedKey] cancellation in
            let pair = ConnectionPair(
                original: try original.open { cancellation.isCancelled },
                copy: try copyWithDerivedKey.open { cancellation.isCancelled })
            defer { pair.close() }
            try Self.work(plan, .down, pair) { try progress.add($0, checking: cancellation) }
        }
    }

    /// Evaluates the results, once everything that was read is known to be equal.
    private func judge(
        _ plan: Plan, _ pair: ConnectionPair, since began: ContinuousClock.Instant, _ outcome: inout Outcome
    ) throws {
        var damage: [String] = []
        var damagedIndexes: Set<String> = []
        for (walk, indexes) in zip(plan.walks, plan.indexes) {
            for (index, rows) in zip(indexes, walk.indexEntries) {
                guard let reason = index.damage(rows) else { continue }
                damage.append(reason)
                damagedIndexes.insert(index.layout.name.description)
            }
        }
        let (present, before) = try checkIntegrity(plan, pair)
        let (complaints, unchecked) = (present.kinds.keys.sorted(), present.unchecked)
        // Such a table cannot be built anew from its rows, because SQLite finds them by the key.
        if let complaint = complaints.first(where: IntegrityComplaints.isAboutKeyOrder) {
            throw StoreError.damaged(
                original.path,
                "rows are out of order or have the same key (integrity_check: \(present.description(of: complaint)))")
        }
        if !Engine.current.checksKeyOrder, let walk = plan.walks.first(where: { !$0.isOrdered }) {
            throw StoreError.damaged(
                original.path, "rows of table \(walk.reading.table) are out of order or have the same key")
        }
        if !hasRebuiltIndexes {
            damage += complaints.filter(IntegrityComplaints.isAboutIndex).map(present.description)
            guard damage.isEmpty else {
                throw DamagedIndexes(complaints: damage, indexes: damagedIndexes.union(before.indexes))
            }
        }
        let gone = before.kinds.keys.filter { present.kinds[$0] == nil }
        let healed = gone.filter(IntegrityComplaints.isAboutIndex).sorted()
        let (harmless, others) = (
            gone.filter(IntegrityComplaints.isHarmlessToRows).sorted(),
            gone.filter { !IntegrityComplaints.isHarmlessToRows($0) }.sorted()
        )
        outcome.tables = plan.walks.count
        outcome.rows = plan.walks.reduce(0) { $0 + $1.rows }
        outcome.healed = harmless.map(before.description)
        outcome.doubts = (others.map(before.description) + (before.damage.map { [$0.message] } ?? [])).map {
            "the database is damaged, and some of its rows may be wrong: \($0)"
        }
        outcome.healedIndexes = before.indexes.subtracting(present.indexes)
        outcome.usesOwnCase =
            try !original.extensions.unicodeCases.isEmpty && pair.original.mayFoldCaseInSchema()
        for walk in plan.walks {
            outcome.warnings += walk.forbiddenNulls.map {
                "table \(walk.reading.table) has rows with NULL in column \($0), although the column is declared "
                    + "NOT NULL"
            }
        }
        outcome.warnings += try forbiddenValues(plan, within: began.duration(to: .now))
        outcome.warnings += unchecked
        outcome.warnings += healed.map {
            "a damaged index was rebuilt from the rows: \(before.description(of: $0))"
        }
        outcome.warnings += outcome.doubts
        outcome.warnings += complaints.filter { !$0.hasPrefix("NULL value in ") }.map {
            "integrity_check: \(present.description(of: $0))"
        }
    }

    /// Returns the values that the definitions of tables forbid and their rows nevertheless contain, except for NULL.
    ///
    /// - Parameter time: The duration of the comparison. A CHECK can run for hours, so the check may take no longer
    ///   than the comparison did.
    private func forbiddenValues(_ plan: Plan, within time: Duration) throws -> [String] {
        guard !plan.constrained.isEmpty else { return [] }
        let observer = observer
        let deadline = ContinuousClock.now.advanced(by: max(time, .seconds(2)))
        // The interval is short because one instruction may call a function that runs for a long time.
        let connection = try original.open(.readWrite, askingEvery: 100) {
            observer.isCancelled || ContinuousClock.now > deadline
        }
        defer { connection.close() }
        do {
            return try IntegrityComplaints.ofValues(in: plan.constrained, connection)
        } catch let error as DatabaseError where error.isInterrupted && !observer.isCancelled {
            return ["the CHECK constraints could not be evaluated for all rows within the time limit"]
        }
    }

    private func makePlan(_ connection: Connection) throws -> Plan {
        var plan = Plan()
        // Pages that map pages to their parents are not part of any b-tree.
        plan.needsIntegrityCheck = try checksOriginal || connection.value(Int.self, "PRAGMA auto_vacuum") != 0
        let isUTF8 = try connection.value(String.self, "PRAGMA encoding") == "UTF-8"
        var tables: [(name: SchemaName, root: Int64, mayLackRowID: Bool)] = []
        try connection.forEachRow(
            """
            SELECT name, rootpage, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid
            """
        ) { row in
            let mayLackRowID = row.isNull(at: 2) || row.holds("without", at: 2)
            tables.append((try row.get(at: 0), try row.get(at: 1), mayLackRowID))
            if row.holds("check", at: 2) || row.holds("strict", at: 2) { plan.constrained.append(try row.get(at: 0)) }
        }
        // The root pages are read once, because the schema table has no index.
        var roots: [SchemaName: Int64] = [:]
        try connection.forEachRow("SELECT name, rootpage FROM sqlite_master WHERE type = 'index'") {
            roots[try $0.get(at: 0)] = try $0.get(at: 1)
        }
        for (table, root, mayLackRowID) in tables {
            let listed = try ListedIndex.all(of: table, connection)
            // The key of a WITHOUT ROWID table is the table itself.
            let key = listed.first { $0.isKey && roots[$0.name] == nil }?.name
            let reading = try TableReading(table, key: key, mayLackRowID: mayLackRowID, connection)
            try reading.check(root: root, connection)
            var indexes: [IndexComparison] = []
            for index in listed {
                guard let root = roots[index.name] else { continue }
                if !hasRebuiltIndexes,
                    let layout = try IndexLayout(
                        index.name, isUnique: index.isUnique, isPartial: index.isPartial, reading, connection),
                    let comparison = try IndexComparison(layout, root: root, isUTF8: isUTF8, reading, connection)
                {
                    indexes.append(comparison)
                } else {
                    plan.needsIntegrityCheck = true
                    if plan.uncompared.last != table { plan.uncompared.append(table) }
                }
            }
            let keyLayout = try reading.key.flatMap {
                try IndexLayout($0, isUnique: true, isPartial: false, reading, connection)
            }
            let keyOrder = keyLayout?.order(isUTF8: isUTF8, keyOnly: true)
            let keyColumns = keyLayout?.columns(of: reading)
            if reading.key != nil, keyOrder == nil || keyColumns == nil { plan.needsIntegrityCheck = true }
            plan.walks.append(
                TableWalk(
                    reading, indexColumns: indexes.map(\.columns),
                    key: keyColumns.flatMap { columns in keyOrder.map { (columns, $0) } }, connection))
            plan.indexes.append(indexes)
            let layout = RecordLayout(
                reading, indexes: indexes.map(\.layout), key: keyLayout, keyOrder: keyOrder,
                hasKeyIndex: listed.contains(where: \.isKey))
            plan.records.append((root, layout))
        }
        return plan
    }

    /// Does one worker's share of the comparison: from the first table up or from the last one down, until the workers
    /// meet.
    ///
    /// Only one worker can walk through an index. One of the workers therefore compares the indexes first, and then
    /// helps with the tables, which balances the load.
    private static func work(
        _ plan: Plan, _ direction: TableWalk.Direction, _ pair: ConnectionPair,
        progress: @escaping (Int64) throws -> Void
    ) throws {
        if direction == .down { try compareIndexes(plan, pair, progress) }
        let walks = direction == .up ? plan.walks : plan.walks.reversed()
        for walk in walks { try walk.walk(direction, pair, progress: progress) }
        if direction == .up { try compareIndexes(plan, pair, progress) }
    }

    private static func compareIndexes(
        _ plan: Plan, _ pair: ConnectionPair, _ progress: (Int64) throws -> Void
    ) throws {
        for index in plan.indexes.joined() { try index.run(pair, progress: progress) }
    }

    /// Uses the engine's own checks for the parts that no comparison covers, and compares their results with those for
    /// the original.
    ///
    /// - Returns: The complaints about the copy, which apply to the original as well; and the complaints about the
    ///   original.
    private func checkIntegrity(
        _ plan: Plan, _ pair: ConnectionPair
    ) throws -> (copy: IntegrityComplaints, original: IntegrityComplaints) {
        // Every page of a b-tree has been read by now, and thereby authenticated. Free pages and pointer maps have not.
        let hasFreePages = try pair.copy.value(Int.self, "PRAGMA freelist_count") != 0
        guard plan.needsIntegrityCheck || hasFreePages || !plan.walks.allSatisfy(\.isOrdered) else {
            return (IntegrityComplaints(), IntegrityComplaints())
        }
        let survey = BackgroundTask("survey") { [original] cancellation in
            let connection = try original.open { cancellation.isCancelled }
            defer { connection.close() }
            return try IntegrityComplaints(connection, tables: plan.uncompared)
        }
        defer { survey.cancel() }
        try pair.copy.forEachUnauthenticPage { complaint in
            try pair.copy.checkLayers()
            if complaint.hasPrefix("error reading ") {
                throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: complaint, path: original.path)
            }
            throw StoreError.proof(original.path, complaint)
        }
        try pair.copy.checkLayers()
        let complaints = try IntegrityComplaints(pair.copy, tables: plan.uncompared)
        let before = try survey.wait()
        if let complaint = complaints.firstBeyond(before) {
            throw StoreError.proof(original.path, "integrity_check: \(complaint)")
        }
        return (complaints, before)
    }

    /// Compares the schema table row by row, and the header fields that SQL can read.
    private func compareSchemaAndHeader(_ plan: Plan, _ pair: ConnectionPair) throws {
        for pragma in ["user_version", "application_id", "schema_version", "encoding", "auto_vacuum"] {
            let sql = SQL(text: "PRAGMA \(pragma)")
            guard try pair.original.value(Value.self, sql) == pair.copy.value(Value.self, sql) else {
                throw StoreError.proof(original.path, "PRAGMA \(pragma) differs")
            }
        }
        let schema: SQL = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
        var size: Int64 = 0
        try pair.original.withStatement(schema) { left in
            try pair.copy.withStatement(schema) { right in
                while try left.step() {
                    guard try right.step(),
                        (0..<Int32(5)).allSatisfy({ left.column($0, equals: right, $0, size: &size) })
                    else { throw StoreError.proof(original.path, "the schema differs") }
                }
                guard try !right.step() else { throw StoreError.proof(original.path, "the schema differs") }
            }
        }
        // The entries are known to be equal and in the same order by now.
        let roots = try pair.copy.values(
            Int64.self, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid")
        guard roots.count == plan.walks.count else { throw StoreError.proof(original.path, "the schema differs") }
        for (walk, root) in zip(plan.walks, roots) { try walk.reading.check(root: root, pair.copy) }
    }
}

/// The number of bytes that both workers have compared. One of the workers reports the number.
// Unchecked but safe across threads: `bytes` is accessed only under `lock`, and `observer` is used only by the one
// worker that reports.
private final class ProofProgress: @unchecked Sendable {
    private let lock = Lock()
    private var bytes: Int64 = 0
    private let observer: UpgradeObserver

    init(_ observer: UpgradeObserver) {
        self.observer = observer
    }

    func add(_ count: Int64) { lock.withLock { bytes += count } }

    /// Adds to the count, and throws if the worker has been canceled.
    func add(_ count: Int64, checking cancellation: UpgradeCancellation) throws {
        add(count)
        if cancellation.isCancelled { throw CancellationError() }
    }

    func show() { observer.update(bytes: lock.withLock { bytes }) }
}

extension StoreError {
    static func proof(_ path: String, _ difference: String) -> StoreError {
        StoreError(
            .proofFailed, path: path, "the copy does not match the original: \(difference)",
            advice: "the copy was discarded; please report this bug and include the schema", changed: .nothing)
    }
}
