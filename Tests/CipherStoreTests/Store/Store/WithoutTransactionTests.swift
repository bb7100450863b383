internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

private struct AppError: Error, Equatable {}

@Suite("Writing without a transaction", .timeLimit(.minutes(20)))
struct WithoutTransactionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test("Each statement is committed separately, and the closure's own transactions as a whole")
    func autocommit() async throws {
        let store = try await StoreFixture(folder).open()
        await #expect(throws: AppError()) {
            try await store.writeWithoutTransaction { db in
                #expect(!db.isInTransaction)
                try db.execute("INSERT INTO chat VALUES ('ana', 'alone')")
                try db.transaction {
                    try db.execute("INSERT INTO chat VALUES ('ana', 'first')")
                    try db.execute("INSERT INTO chat VALUES ('ana', 'second')")
                }
                try? db.transaction {
                    try db.execute("INSERT INTO chat VALUES ('ana', 'undone')")
                    throw AppError()
                }
                throw AppError()
            }
        }
        #expect(try await store.bodies() == ["alone", "first", "second"])
    }

    @Test("A transaction that is left open is rolled back, and the store continues", arguments: [true, false])
    func leftOpen(fails: Bool) async throws {
        let store = try await StoreFixture(folder).open()
        let body: @Sendable (Connection) throws -> Void = { db in
            try db.execute("BEGIN IMMEDIATE")
            try db.execute("INSERT INTO chat VALUES ('ana', 'undone')")
            if fails { throw AppError() }
        }
        if fails {
            await #expect(throws: AppError()) { try await store.writeWithoutTransaction(body) }
        } else {
            let error = try await failure(StoreError.self) { try await store.writeWithoutTransaction(body) }
            #expect(error.code == .misuse)
        }
        try await store.insert("kept")
        #expect(try await store.bodies() == ["kept"])
    }

    @Test("Settings and temporary tables are gone afterwards")
    func settings() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.write { db in
            try db.executeScript(
                """
                CREATE TABLE parent(id INTEGER PRIMARY KEY); CREATE TABLE child(p REFERENCES parent(id));
                """)
        }
        try await store.writeWithoutTransaction { db in
            try db.execute("PRAGMA foreign_keys = OFF")
            try db.execute("PRAGMA cache_size = 10")
            try db.execute("INSERT INTO child VALUES (1)")
            try db.execute("CREATE TEMP TABLE chat AS SELECT 'temporary' AS body")
            #expect(try db.values(String.self, "SELECT body FROM chat") == ["temporary"])
        }
        try await store.write { db throws in
            #expect(try db.value(Int.self, "PRAGMA foreign_keys") == 1)
            #expect(try db.value(Int.self, "PRAGMA cache_size") != 10)
            #expect(try db.value(Int.self, "PRAGMA synchronous") == 2)
            #expect(throws: DatabaseError.self) { try db.execute("INSERT INTO child VALUES (2)") }
            #expect(throws: DatabaseError.self) { try db.execute("COMMIT") }
        }
        #expect(try await store.bodies().isEmpty)
    }

    @Test("VACUUM runs, and removes deleted content")
    func vacuum() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.write { db in
            for _ in 0..<100 { try db.execute("INSERT INTO chat VALUES ('ana', hex(zeroblob(4000)))") }
            try db.execute("DELETE FROM chat WHERE rowid > 1")
        }
        try await store.writeWithoutTransaction { try $0.execute("VACUUM") }
        #expect(try await store.read { try $0.value(Int.self, "PRAGMA freelist_count") } == 0)
        #expect(try await store.bodies().count == 1)
        #expect(try await store.read { try $0.value(String.self, "PRAGMA quick_check") } == "ok")
    }

    static let outlasting = [
        "PRAGMA journal_mode = DELETE", "PRAGMA synchronous = OFF", "PRAGMA fullfsync = OFF", "PRAGMA wal_checkpoint",
        "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_autocheckpoint = 1", "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA writable_schema = ON", "PRAGMA temp_store = FILE", "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA schema_version = 1", "PRAGMA rekey = 'other'", "PRAGMA key = 'other'", "PRAGMA cipher_page_size = 1024",
        "PRAGMA query_only = ON", "PRAGMA busy_timeout = 0", "PRAGMA page_size = 1024", "ATTACH ':memory:' AS other",
        "ATTACH 'other.db' AS other KEY ''", "DETACH main", "EXPLAIN ATTACH ':memory:' AS other",
    ]

    @Test(
        "A statement that would change the key, the journal or the safety of commits is refused", arguments: outlasting)
    func refused(statement: String) async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.insert("kept")
        let error = try await failure(DatabaseError.self) {
            try await store.writeWithoutTransaction { try $0.execute(SQL(text: statement)) }
        }
        #expect(error.code == 23)
        await store.close()
        #expect(try await fixture.open().bodies() == ["kept"])
    }

    @Test("Observers read again afterwards, and notice other processes as before")
    func observed() async throws {
        let store = try await StoreFixture(folder).open()
        var iterator = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        try await store.writeWithoutTransaction { try $0.execute("INSERT INTO chat VALUES ('ana', 'one')") }
        #expect(try await iterator.next() == 1)
        let other = try TestProgram.built("CipherLockHolder").start(["sql", store.path, "7"])
        #expect(try other.line() == "ready")
        #expect(try other.ask("INSERT INTO chat VALUES ('ben', 'from elsewhere')").hasPrefix("ok"))
        #expect(try await iterator.next() == 2)
        _ = try other.wait()
    }

    @Test("A call inside a closure is refused, and canceling interrupts a statement")
    func ends() async throws {
        let store = try await StoreFixture(folder).open()
        let nested = try await failure(StoreError.self) {
            try await store.write { _ in try store.writeWithoutTransactionBlocking { _ in } }
        }
        #expect(nested.code == .misuse)
        let running = Gate()
        let task = Task {
            try await store.writeWithoutTransaction { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'committed')")
                running.arrive()
                try db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
            }
        }
        await running.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await store.bodies() == ["committed"])
    }

    @Test("A connection that escaped its closure is refused")
    func leaked() async throws {
        let store = try await StoreFixture(folder).open()
        final class Leak: @unchecked Sendable { var connection: Connection? }
        let leak = Leak()
        try await store.writeWithoutTransaction { leak.connection = $0 }
        let connection = try #require(leak.connection)
        #expect(try await failure(DatabaseError.self) { try connection.execute("SELECT 1") }.code == 21)
    }
}
