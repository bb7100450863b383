internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(20)))
struct BackfillTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private struct Wrong: Error {}

    /// A store with a table of a thousand rows that count their visits.
    private func open(_ table: String = "CREATE TABLE t(id INTEGER PRIMARY KEY, visits INTEGER DEFAULT 0)") async throws
        -> EncryptedStore
    {
        var configuration = Configuration(databaseName: "app.db", version: 1)
        configuration.encryption.isEnabled = true
        let store = try await EncryptedStore.open(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        try await store.write { connection in
            try connection.executeScript(text: table)
        }
        return store
    }

    private func fill(_ store: EncryptedStore, _ ids: some Sequence<Int> & Sendable) async throws {
        try await store.write { connection in
            for id in ids { try connection.execute("INSERT INTO t(rowid, visits) VALUES (\(id), 0)") }
        }
    }

    private static let visit: @Sendable (Connection, [Int64]) throws -> Void = { connection, rowIDs in
        for rowID in rowIDs { try connection.execute("UPDATE t SET visits = visits + 1 WHERE rowid = \(rowID)") }
    }

    private func visits(_ store: EncryptedStore) async throws -> [Int: Int] {
        try await store.read { connection in
            var counts: [Int: Int] = [:]
            try connection.forEachRow("SELECT visits, count(*) FROM t GROUP BY visits") {
                counts[try $0.get(at: 0)] = try $0.get(at: 1)
            }
            return counts
        }
    }

    private func state(_ store: EncryptedStore) async throws -> String? {
        let entry = try await store.read { try BackfillTable.entry("b", $0) }
        return entry.map {
            $0.isFinished ? "finished" : $0.failure == nil ? "unfinished" : "failed: \($0.failure ?? "")"
        }
    }

    @Test(
        "A backfill visits every row once in batches, reports its progress, and does not run again",
        arguments: [1, 7, 100, 101, 500])
    func visitsEveryRow(batch: Int) async throws {
        let store = try await open()
        try await fill(store, (0..<100).map { $0 * $0 - 300 })
        let told = Told()
        let rows = try await store.backfill("b", of: "t", batch: batch, progress: { told.add($0) }, Self.visit)
        #expect(rows == 100)
        #expect(try await visits(store) == [1: 100])
        #expect(told.all.last == BackfillProgress(done: 100, total: 100))
        #expect(told.all.map(\.done) == told.all.map(\.done).sorted())
        #expect(told.all.count == 100 / batch + 1)
        #expect(try await state(store) == "finished")
        #expect(try await store.backfill("b", of: "T") { _, _ in Issue.record("it had finished") } == 0)
    }

    /// Collects the values that a progress closure gets.
    private final class Told: @unchecked Sendable {
        // Read and written only under `lock`.
        private var list: [BackfillProgress] = []
        private let lock = NSLock()

        var all: [BackfillProgress] { lock.withLock { list } }
        func add(_ progress: BackfillProgress) { lock.withLock { list.append(progress) } }
    }

    @Test("A backfill that fails rolls its batch back, records this in the history, and continues from there")
    func failing() async throws {
        let store = try await open()
        try await fill(store, 0..<100)
        await #expect(throws: Wrong.self) {
            try await store.backfill("b", of: "t", batch: 10) { connection, rowIDs in
                try Self.visit(connection, rowIDs)
                if rowIDs.contains(35) { throw Wrong() }
            }
        }
        #expect(try await visits(store) == [0: 70, 1: 30])
        #expect(try await state(store) == "failed: Wrong")
        #expect(try await store.backfill("b", of: "t", batch: 10, Self.visit) == 70)
        #expect(try await visits(store) == [1: 100])
        #expect(try await state(store) == "finished")
    }

    @Test("A backfill that is canceled between batches keeps what is done, and is not a failure")
    func cancellation() async throws {
        let store = try await open()
        try await fill(store, 0..<100)
        let (reached, released) = (Gate(), Gate())
        let task = Task {
            try await store.backfill(
                "b", of: "t", batch: 10,
                progress: { progress in
                    guard progress.done == 40 else { return }
                    reached.arrive()
                    released.block()
                }, Self.visit)
        }
        await reached.wait()
        task.cancel()
        released.arrive()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await visits(store) == [0: 60, 1: 40])
        #expect(try await state(store) == "unfinished")
        #expect(try await store.backfill("b", of: "t", Self.visit) == 60)
        #expect(try await visits(store) == [1: 100])
    }

    @Test("A backfill that is canceled during a batch rolls the batch back")
    func cancellationInBatch() async throws {
        let store = try await open()
        try await fill(store, 0..<100)
        let reached = Gate()
        let task = Task {
            try await store.backfill("b", of: "t", batch: 10) { connection, rowIDs in
                try Self.visit(connection, rowIDs)
                guard rowIDs.contains(25) else { return }
                reached.arrive()
                try connection.execute(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
            }
        }
        await reached.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await visits(store) == [0: 80, 1: 20])
        #expect(try await state(store) == "unfinished")
    }

    @Test("A backfill visits rows inserted after its current position, and not those before it")
    func insertedMeanwhile() async throws {
        let store = try await open()
        try await fill(store, 100..<200)
        try await store.backfill("b", of: "t", batch: 50) { connection, rowIDs in
            try Self.visit(connection, rowIDs)
            guard rowIDs.contains(149) else { return }
            try connection.execute("INSERT INTO t(id) VALUES (1), (500)")
        }
        #expect(try await visits(store) == [0: 1, 1: 101])
    }

    @Test("A backfill may delete the rows that it visits")
    func deletes() async throws {
        let store = try await open()
        try await fill(store, 0..<100)
        let rows = try await store.backfill("b", of: "t", batch: 9) { connection, rowIDs in
            for rowID in rowIDs { try connection.execute("DELETE FROM t WHERE rowid = \(rowID)") }
        }
        #expect(rows == 100)
        #expect(try await visits(store).isEmpty)
    }

    @Test("A backfill processes a table without rowid by its primary key, whatever values the key has")
    func withoutRowID() async throws {
        let store = try await open(
            """
            CREATE TABLE t(a TEXT COLLATE NOCASE, b, visits INTEGER DEFAULT 0, PRIMARY KEY (a, b)) WITHOUT ROWID;
            INSERT INTO t(a, b) VALUES ('x', 1), ('X', 1.5), ('x', 'one'), ('y', x'00'), ('y', x'0001'), ('y', ''),
                (CAST(x'ff' AS TEXT), 1), (CAST(x'ff41' AS TEXT), 1), (CAST(x'fe' AS TEXT), 1), ('', 0);
            """)
        let rows = try await store.backfill("b", keysOf: "t", batch: 1) { connection, keys in
            #expect(keys.count == 1 && keys[0].count == 2)
            try connection.execute("UPDATE t SET visits = visits + (a = \(keys[0][0]) AND b = \(keys[0][1]))")
        }
        #expect(rows == 10)
        // Keys with invalid UTF-8 are repaired when they are read, so the body finds no row for these.
        #expect(try await visits(store) == [1: 7, 0: 3])
    }

    @Test("A backfill uses the name of the rowid that no column has")
    func hiddenRowID() async throws {
        let store = try await open("CREATE TABLE t(rowid TEXT, _rowid_ TEXT, visits INTEGER)")
        try await store.write { connection in
            for index in 0..<5 { try connection.execute("INSERT INTO t VALUES ('same', 'same', \(index))") }
        }
        let rows = try await store.backfill("b", of: "t", batch: 2) { connection, rowIDs in
            for rowID in rowIDs { try connection.execute("UPDATE t SET visits = -1 WHERE oid = \(rowID)") }
        }
        #expect(rows == 5)
        #expect(try await visits(store) == [-1: 5])
    }

    @Test("A backfill continues under the new name of a renamed table", arguments: [false, true])
    func renamedTable(isFinished: Bool) async throws {
        let store = try await open()
        try await fill(store, 1...100)
        let stop = isFinished ? 100 : 40
        _ = try? await store.backfill("b", of: "t", batch: 20) { connection, rowIDs in
            guard rowIDs.allSatisfy({ $0 <= stop }) else { throw Wrong() }
            try Self.visit(connection, rowIDs)
        }
        let other: @Sendable (Connection, [Int64]) throws -> Void = { connection, rowIDs in
            for rowID in rowIDs { try connection.execute("UPDATE u SET visits = visits + 1 WHERE rowid = \(rowID)") }
        }
        try await store.write { try $0.execute("CREATE TABLE u(visits)") }
        await #expect(throws: StoreError.self) { try await store.backfill("b", of: "u", other) }
        try await store.write { connection in
            try connection.execute("DROP TABLE u")
            try connection.execute("ALTER TABLE t RENAME TO u")
        }
        #expect(try await store.backfill("b", of: "u", batch: 20, other) == 100 - stop)
        #expect(try await state(store) == "finished")
        #expect(try await store.read { try $0.values(Int.self, "SELECT DISTINCT visits FROM u") } == [1])
        #expect(try await store.backfill("b", of: "u", other) == 0)
        await #expect(throws: StoreError.self) { try await store.backfill("b", of: "gone", other) }
    }

    @Test("A backfill that is impossible is refused and leaves nothing behind")
    func refusals() async throws {
        let store = try await open(
            "CREATE TABLE t(id INTEGER PRIMARY KEY); CREATE TABLE w(a PRIMARY KEY) WITHOUT ROWID; CREATE VIEW v AS SELECT 1"
        )
        for (table, batch) in [("w", 1), ("v", 1), ("missing", 1), ("t", 0)] {
            let error = try await failure(StoreError.self) {
                try await store.backfill("b", of: table, batch: batch) { _, _ in }
            }
            #expect(error.code == .misuse, "\(table)")
        }
        let keyless = try await failure(StoreError.self) { try await store.backfill("b", keysOf: "t") { _, _ in } }
        #expect(keyless.code == .misuse)
        #expect(try await store.read { try BackfillTable.exists($0) } == false)
        try await store.backfill("b", of: "t") { _, _ in }
        let other = try await failure(StoreError.self) { try await store.backfill("b", keysOf: "w") { _, _ in } }
        #expect(other.detail.contains("was started on the table t, not on w"))
    }

    @Test("A backfill that two tasks run together still visits every row once")
    func twoTasks() async throws {
        let store = try await open()
        try await fill(store, 0..<300)
        async let first = store.backfill("b", of: "t", batch: 7, Self.visit)
        async let second = store.backfill("b", of: "t", batch: 7, Self.visit)
        let (one, two) = try await (first, second)
        #expect(one + two == 300)
        #expect(try await visits(store) == [1: 300])
    }
}
