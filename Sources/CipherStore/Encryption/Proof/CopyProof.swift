import CipherSQLite

/// Shows that the copy is the original, encrypted.
///
/// Shares no connection, key object or plan with the builder.
///
/// Two workers read both files through: every row of every table and every entry of every index, to the bit and in
/// order. SQLCipher authenticates each page of the copy as it is read.
struct CopyProof {
    let original: ProofConnection
    /// Opened with the key as the provider gave it when asked again.
    let copy: ProofConnection
    /// The same with the key derived, so that the second worker need not wait for a derivation.
    let copyWithDerivedKey: ProofConnection
    let observer: UpgradeObserver

    /// What was compared.
    struct Outcome {
        var tables = 0
        var rows: Int64 = 0
    }

    private struct Plan: Sendable {
        var walks: [TableWalk] = []
        var indexes: [IndexComparison] = []
        /// Whether something is left that only SQLite's own check can compare.
        var needsIntegrityCheck = false
    }

    /// Compares.
    ///
    /// - Throws: ``StoreError`` with `proofFailed`, naming the first difference, or with `corrupt` where the original is
    ///   damaged in such a way that it has no copy.
    func run() throws -> Outcome {
        let observer = observer
        let source = try original.open { observer.isCancelled }
        defer { source.close() }
        do {
            return try compare(source)
        } catch let error as StoreError where error.code == .proofFailed {
            // Rows out of order, say: the copy has them in order.
            guard let complaint = try IntegrityComplaints(source).kinds.keys.min() else { throw error }
            throw StoreError(
                .corrupt, path: original.path,
                "the original is damaged, so that its copy is not equal to it (integrity_check: \(complaint))",
                advice: "restore the file from a backup, or save its rows with the sqlite3 shell's .recover; "
                    + "nothing was changed")
        }
    }

    private func compare(_ source: Connection) throws -> Outcome {
        let observer = observer
        let plan = try makePlan(source)
        let progress = ProofProgress(observer)
        let helper = BackgroundTask("proof") { [original, copyWithDerivedKey] cancellation in
            let pair = ConnectionPair(
                original: try original.open { cancellation.isCancelled },
                copy: try copyWithDerivedKey.open { cancellation.isCancelled })
            defer { pair.close() }
            try Self.work(plan, .down, pair) { bytes in
                progress.add(bytes)
                if cancellation.isCancelled { throw CancellationError() }
            }
        }
        do {
            // SQLCipher derives the key itself here: the proof that the provider's own key opens the file.
            let pair = ConnectionPair(original: source, copy: try copy.open { observer.isCancelled })
            defer { pair.copy.close() }
            try compareSchema(pair)
            try Self.work(plan, .up, pair) { bytes in
                progress.add(bytes)
                progress.show()
                try observer.checkCancellation()
            }
            try helper.wait()
            try checkIntegrity(plan, pair)
        } catch {
            helper.cancel()
            throw error
        }
        return Outcome(tables: plan.walks.count, rows: plan.walks.reduce(0) { $0 + $1.rows })
    }

    private func makePlan(_ connection: Connection) throws -> Plan {
        var plan = Plan()
        // Pages that map pages to their parents are in no b-tree.
        plan.needsIntegrityCheck = try connection.value(Int.self, "PRAGMA auto_vacuum") != 0
        var tables: [(name: String, mayLackRowID: Bool)] = []
        try connection.forEachRow(
            """
            SELECT name, ifnull(sql LIKE '%without%', 1) FROM sqlite_master
            WHERE type = 'table' AND rootpage > 0 ORDER BY rowid
            """
        ) { tables.append((try $0.get(at: 0), try $0.get(at: 1))) }
        // Read once, for the schema table has no index; by byte, as SQLite compares.
        let trees = Set(
            try connection.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'index'")
                .map { Array($0.utf8) })
        for (table, mayLackRowID) in tables {
            let walk = try TableWalk(table, mayLackRowID: mayLackRowID, connection)
            plan.walks.append(walk)
            var indexes: [(name: String, isPartial: Bool)] = []
            try connection.forEachRow(SQL(text: "PRAGMA index_list(\(SQL.quoted(identifier: table)))")) { row in
                // The key of a WITHOUT ROWID table is the table itself.
                let name = try row.get(String.self, at: 1)
                guard trees.contains(Array(name.utf8)) else { return }
                indexes.append((name, try row.get(Int.self, at: 4) != 0))
            }
            for index in indexes {
                let comparison = try IndexComparison(
                    index.name, isPartial: index.isPartial, table: table, rowid: walk.rowid, connection)
                if let comparison { plan.indexes.append(comparison) } else { plan.needsIntegrityCheck = true }
            }
        }
        return plan
    }

    /// One worker's share: from the first table up or from the last one down, until the workers meet.
    ///
    /// The indexes, which only one worker can walk through, come first for one of them: the tables that it then helps
    /// with even the load out.
    private static func work(
        _ plan: Plan, _ direction: TableWalk.Direction, _ pair: ConnectionPair, progress: (Int64) throws -> Void
    ) throws {
        if direction == .down { try compareIndexes(plan, pair, progress) }
        let walks = direction == .up ? plan.walks : plan.walks.reversed()
        for walk in walks { try walk.walk(direction, pair, progress: progress) }
        if direction == .up { try compareIndexes(plan, pair, progress) }
    }

    private static func compareIndexes(
        _ plan: Plan, _ pair: ConnectionPair, _ progress: (Int64) throws -> Void
    ) throws {
        for index in plan.indexes { try index.run(pair, progress: progress) }
    }

    /// What no comparison reaches is left to the engine's own checks, held against what they say of the original.
    private func checkIntegrity(_ plan: Plan, _ pair: ConnectionPair) throws {
        // Every page of a b-tree was read by now, and so authenticated; free pages and pointer maps were not.
        let hasFreePages = try pair.copy.value(Int.self, "PRAGMA freelist_count") != 0
        guard plan.needsIntegrityCheck || hasFreePages else { return }
        let survey = BackgroundTask("survey") { [original] cancellation in
            let connection = try original.open { cancellation.isCancelled }
            defer { connection.close() }
            return try IntegrityComplaints(connection)
        }
        defer { survey.cancel() }
        if Engine.current.hasCipherIntegrityCheck,
            let page = try pair.copy.value(String.self, "PRAGMA cipher_integrity_check")
        {
            throw StoreError.proof(original.path, page)
        }
        let complaints = try IntegrityComplaints(pair.copy)
        if let complaint = complaints.firstBeyond(try survey.wait()) {
            throw StoreError.proof(original.path, "integrity_check: \(complaint)")
        }
    }

    /// The schema table row by row, and the numbers of the header that SQL can reach.
    private func compareSchema(_ pair: ConnectionPair) throws {
        for pragma in ["user_version", "application_id", "schema_version", "encoding", "auto_vacuum"] {
            let sql = SQL(text: "PRAGMA \(pragma)")
            guard try pair.original.value(Value.self, sql) == pair.copy.value(Value.self, sql) else {
                throw StoreError.proof(original.path, "PRAGMA \(pragma) differs")
            }
        }
        let schema = SQL("SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
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
    }
}

/// The bytes that both workers have compared, shown by one of them.
private final class ProofProgress: @unchecked Sendable {
    // `bytes` is read and written only under `lock`; `observer` is used by the worker that shows.
    private let lock = Lock()
    private var bytes: Int64 = 0
    private let observer: UpgradeObserver

    init(_ observer: UpgradeObserver) {
        self.observer = observer
    }

    func add(_ count: Int64) { lock.withLock { bytes += count } }
    func show() { observer.update(bytes: lock.withLock { bytes }) }
}

extension StoreError {
    static func proof(_ path: String, _ difference: String) -> StoreError {
        StoreError(
            .proofFailed, path: path, "the encrypted copy is not equal to the original: \(difference)",
            advice: "the copy was discarded and nothing was changed; report this with the schema")
    }
}
