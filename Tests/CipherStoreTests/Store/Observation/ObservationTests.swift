internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Observing a store", .timeLimit(.minutes(20)))
struct ObservationTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ script: String = "") async throws -> EncryptedStore {
        let store = try await StoreFixture(folder).open()
        if !script.isEmpty { try await store.write { try $0.executeScript(text: script) } }
        return store
    }

    /// Counts how often a closure ran.
    private final class Counter: @unchecked Sendable {
        private let lock = NSLock()
        private var runs = 0
        var count: Int { lock.withLock { runs } }
        @discardableResult
        func next() -> Int {
            lock.withLock {
                runs += 1
                return runs
            }
        }
    }

    @Test("The first value is the current one, and another one follows each commit")
    func values() async throws {
        let store = try await open()
        let bodies = store.observe { try $0.values(String.self, "SELECT body FROM chat ORDER BY rowid") }
        var iterator = bodies.makeAsyncIterator()
        #expect(try await iterator.next() == [])
        try await store.insert("one")
        #expect(try await iterator.next() == ["one"])
        try await store.insert("two")
        #expect(try await iterator.next() == ["one", "two"])
    }

    @Test("A task that waits for the next value gets it as soon as it is committed")
    func waiting() async throws {
        let store = try await open()
        let seen = Gate()
        let task = Task {
            for try await count in store.observe({ try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }) {
                seen.arrive()
                if count == 3 { return count }
            }
            return -1
        }
        for number in 1...3 {
            await seen.wait(until: number)
            try await store.insert("\(number)")
        }
        #expect(try await task.value == 3)
    }

    /// A write, and whether the observed query must be read again.
    struct Write: CustomTestStringConvertible, Sendable {
        let sql: String
        var query = "SELECT a FROM t"
        let isOfInterest: Bool
        var testDescription: String { "\(sql) / \(query)" }
    }

    private static let schema = """
        CREATE TABLE t(id INTEGER PRIMARY KEY, a, b, c UNIQUE);
        CREATE TABLE r(id INTEGER PRIMARY KEY, a, u UNIQUE ON CONFLICT REPLACE);
        CREATE TABLE other(x); CREATE TABLE source(x);
        CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID;
        CREATE TABLE child(id INTEGER PRIMARY KEY, t REFERENCES t(id) ON DELETE CASCADE ON UPDATE SET NULL, note);
        CREATE TRIGGER log AFTER INSERT ON source BEGIN UPDATE OR REPLACE t SET c = 'c2' WHERE id = 1; END;
        CREATE VIEW v AS SELECT a FROM t;
        INSERT INTO t VALUES (1, 'a1', 'b1', 'c1'), (2, 'a2', 'b2', 'c2');
        INSERT INTO r VALUES (1, 'a1', 'u1'), (2, 'a2', 'u2');
        INSERT INTO child VALUES (1, 1, 'n'); INSERT INTO w VALUES ('k', 'v');
        """

    static let writes: [Write] = [
        Write(sql: "INSERT INTO t(a) VALUES ('new')", isOfInterest: true),
        Write(sql: "DELETE FROM t", isOfInterest: true),
        Write(sql: "UPDATE t SET a = 'x' WHERE id = 1", isOfInterest: true),
        Write(sql: "UPDATE t SET A = 'x' WHERE id = 1", isOfInterest: true),
        Write(sql: "UPDATE t SET b = 'x' WHERE id = 1", isOfInterest: false),
        Write(sql: "UPDATE OR REPLACE t SET c = 'c2' WHERE id = 1", isOfInterest: true),
        Write(sql: "REPLACE INTO t(id, a, c) VALUES (9, 'new', 'c1')", isOfInterest: true),
        Write(sql: "UPDATE r SET u = 'u2' WHERE id = 1", query: "SELECT a FROM r", isOfInterest: true),
        Write(sql: "INSERT INTO source VALUES (1)", isOfInterest: true),
        Write(sql: "INSERT INTO other VALUES (1)", isOfInterest: false),
        Write(sql: "UPDATE t SET rowid = 7 WHERE id = 1", query: "SELECT id FROM t", isOfInterest: true),
        Write(sql: "UPDATE t SET oid = 7 WHERE id = 1", query: "SELECT _rowid_ FROM t", isOfInterest: true),
        Write(sql: "INSERT INTO t(a) VALUES ('new')", query: "SELECT count(*) FROM t", isOfInterest: true),
        Write(
            sql: "DELETE FROM other", query: "SELECT count(*) FROM (SELECT 1 FROM w)",
            isOfInterest: !Engine.current.tellsOfCountedTables),
        Write(sql: "INSERT INTO w VALUES ('k2', 'v')", query: "SELECT v FROM w", isOfInterest: true),
        Write(sql: "DELETE FROM t WHERE id = 1", query: "SELECT note FROM child", isOfInterest: true),
        Write(sql: "UPDATE t SET id = 5 WHERE id = 1", query: "SELECT t FROM child", isOfInterest: true),
        Write(sql: "UPDATE t SET a = 'x' WHERE id = 1", query: "SELECT * FROM v", isOfInterest: true),
        Write(sql: "UPDATE t SET b = 'x' WHERE id = 1", query: "SELECT * FROM v", isOfInterest: false),
        Write(sql: "DROP VIEW v; CREATE VIEW v AS SELECT b FROM t", query: "SELECT * FROM v", isOfInterest: true),
        Write(sql: "ALTER TABLE t RENAME TO t2; CREATE TABLE t(a)", isOfInterest: true),
        Write(sql: "CREATE INDEX i ON t(a)", isOfInterest: true),
        Write(sql: "PRAGMA user_version = 77", query: "PRAGMA user_version", isOfInterest: true),
    ]

    @Test("A commit causes a new read only if it changed something that was read", arguments: writes)
    func region(_ write: Write) async throws {
        let store = try await open(Self.schema)
        let (runs, seen) = (Counter(), Gate())
        let task = Task {
            // No value equals the previous one.
            for try await (number, rows, isLast) in store.observe({ db in
                let rows = try db.values(Value.self, SQL(text: write.query))
                let isLast = try db.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE name = 'last'") == 1
                return (runs.next(), rows, isLast)
            }) {
                seen.arrive()
                if isLast { return (number, rows) }
            }
            return (0, [])
        }
        await seen.wait()
        try await store.write { try $0.executeScript(text: write.sql) }
        // Old engines do not report which tables a query reads if it uses none of their columns.
        let isTold = write.isOfInterest || !Engine.current.tellsOfCountedTables
        if isTold { await seen.wait(until: 2) }
        // Each change of the schema is reported.
        try await store.write { try $0.executeScript("CREATE TABLE last(x)") }
        let (number, rows) = try await task.value
        #expect(number == (isTold ? 3 : 2))
        #expect(try await store.read { try $0.values(Value.self, SQL(text: write.query)) } == rows)
    }

    @Test("A value equal to the previous one is omitted")
    func duplicates() async throws {
        let store = try await open()
        let (runs, read) = (Counter(), Gate())
        let task = Task {
            var halves: [Int] = []
            for try await half in store.observe({ db in
                runs.next()
                read.arrive()
                return try db.value(Int.self, "SELECT count(*) / 2 FROM chat") ?? 0
            }) {
                halves.append(half)
                if half == 1 { break }
            }
            return halves
        }
        await read.wait()
        try await store.insert("one")
        await read.wait(until: 2)
        try await store.insert("two")
        #expect(try await task.value == [0, 1])
        #expect(runs.count == 3)
    }

    @Test("A slow observer gets only the latest value, with a single read")
    func slow() async throws {
        let store = try await open()
        let runs = Counter()
        let observation = store.observe { db in
            runs.next()
            return try db.value(Int.self, "SELECT count(*) FROM chat") ?? 0
        }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        for number in 1...100 { try await store.insert("\(number)") }
        #expect(try await iterator.next() == 100)
        #expect(runs.count == 2)
    }

    @Test("Eight observers of a thousand commits get the last value and no partial commit")
    func manyObservers() async throws {
        let store = try await open(
            "CREATE TABLE account(id INTEGER PRIMARY KEY, amount); INSERT INTO account VALUES (1, 1000), (2, 0)")
        let tasks = (0..<8).map { _ in
            Task {
                var sums: Set<Int> = []
                for try await amounts in store.observe({
                    try $0.values(Int.self, "SELECT amount FROM account ORDER BY id")
                }) {
                    sums.insert(amounts[0] + amounts[1])
                    if amounts == [0, 1000] { break }
                }
                return sums
            }
        }
        for _ in 0..<1_000 {
            try await store.write { db in
                try db.execute("UPDATE account SET amount = amount - 1 WHERE id = 1")
                try db.execute("UPDATE account SET amount = amount + 1 WHERE id = 2")
            }
        }
        for task in tasks { #expect(try await task.value == [1000]) }
    }

    @Test("A commit of another process is noticed automatically")
    func otherProcess() async throws {
        let store = try await open()
        let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
        #expect(try other.line() == "ready")
        #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'from elsewhere')").hasPrefix("ok"))
        #expect(try await iterator.next() == 1)
        #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'again')").hasPrefix("ok"))
        #expect(try await iterator.next() == 2)
        _ = try other.wait()
    }

    @Test("A commit of another store on the same file is noticed after a check for changes")
    func asking() async throws {
        let store = try await open()
        let second = try await StoreFixture(folder).open()
        let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        try await second.insert("one")
        try await store.checkForChanges()
        #expect(try await iterator.next() == 1)
    }

    @Test("Canceling the task ends a waiting observation without an error")
    func cancellation() async throws {
        let store = try await open()
        let seen = Gate()
        let task = Task {
            for try await _ in store.observe({ try $0.value(Int.self, "SELECT count(*) FROM chat") }) { seen.arrive() }
            return true
        }
        await seen.wait()
        task.cancel()
        #expect(try await task.value)
    }

    @Test("Closing the store ends waiting and later observations with the error closed")
    func closing() async throws {
        let store = try await open()
        let seen = Gate()
        let observation = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") }
        let task = Task { for try await _ in observation { seen.arrive() } }
        await seen.wait()
        await store.close()
        #expect(try await failure(StoreError.self) { try await task.value }.code == .closed)
        #expect(try await failure(StoreError.self) { try await observation.first { _ in true } }.code == .closed)
    }

    @Test("A closure that writes ends its observation with SQLITE_READONLY, and nothing is written")
    func writing() async throws {
        let store = try await open()
        let observation = store.observe { try $0.execute("INSERT INTO chat VALUES ('a', 'b')") }
        var iterator = observation.makeAsyncIterator()
        let error = try await failure(DatabaseError.self) { try await iterator.next() }
        #expect(error.code == 8)
        #expect(try await iterator.next() == nil)
        #expect(try await store.bodies().isEmpty)
    }

    @Test("An error thrown by the closure ends its observation")
    func throwing() async throws {
        struct Fault: Error {}
        let store = try await open()
        var iterator = store.observe { _ in throw Fault() }.makeAsyncIterator()
        await #expect(throws: Fault.self) { try await iterator.next() }
    }

    @Test("A write that is rolled back causes no new value")
    func rolledBack() async throws {
        let store = try await open()
        let runs = Counter()
        let observation = store.observe { db in
            runs.next()
            return try db.value(Int.self, "SELECT count(*) FROM chat") ?? 0
        }
        var iterator = observation.makeAsyncIterator()
        _ = try await iterator.next()
        struct Fault: Error {}
        await #expect(throws: Fault.self) {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('a', 'undone')")
                throw Fault()
            }
        }
        try await store.insert("kept")
        #expect(try await iterator.next() == 1)
        #expect(runs.count == 2)
    }

    @Test("A full-text search is repeated after any commit, because it may read other tables", .enabled(if: ftsIsThere))
    func fullText() async throws {
        let store = try await open(
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body);
            CREATE VIRTUAL TABLE search USING fts5(body, content = 'note', content_rowid = 'id');
            INSERT INTO note VALUES (1, 'hello world'); INSERT INTO search(rowid, body) VALUES (1, 'hello world');
            """)
        let observation = store.observe {
            try $0.values(String.self, "SELECT body FROM search WHERE search MATCH 'hello'")
        }
        var iterator = observation.makeAsyncIterator()
        #expect(try await iterator.next() == ["hello world"])
        try await store.write { try $0.execute("UPDATE note SET body = 'changed' WHERE id = 1") }
        #expect(try await iterator.next() == ["changed"])
    }

    private static let ftsIsThere: Bool = {
        (try? Connection(inMemoryWith: []).executeScript("CREATE VIRTUAL TABLE f USING fts5(a)")) != nil
    }()

    @Test("Changed tables are reported by name in any letter case, and together if several changed since the last look")
    func tables() async throws {
        let store = try await open("CREATE TABLE other(x)")
        let changes = store.changes(in: ["CHAT"])
        let seen = Gate()
        let told = Task {
            var iterator = changes.makeAsyncIterator()
            seen.arrive()
            return try await iterator.next() != nil
        }
        await seen.wait()
        try await store.write { try $0.execute("INSERT INTO other VALUES (1)") }
        try await store.insert("one")
        #expect(try await told.value)
    }

    @Test("A missing table is refused by name")
    func missingTable() async throws {
        let store = try await open()
        var iterator = store.changes(in: ["chats"]).makeAsyncIterator()
        let error = try await failure(StoreError.self) { try await iterator.next() }
        #expect(error.code == .misuse)
        #expect(error.detail.contains("chats"))
    }
}
