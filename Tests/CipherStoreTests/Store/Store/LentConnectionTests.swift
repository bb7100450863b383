internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The app's own error.
private struct AppError: Error, Equatable {}

/// Passes a connection out of its closure, which no app should do.
private final class Leak: @unchecked Sendable {
    var connection: Connection?
    var code: Int32?
}

/// What a closure may do with its connection.
@Suite(.timeLimit(.minutes(20)))
struct LentConnectionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    // MARK: Names and strings

    private static let misspelled: [@Sendable (Connection) throws -> Void] = [
        { try $0.execute("DELETE FROM chat WHERE \(identifier: "titel") >= 'a'") },
        { try $0.execute("DELETE FROM chat WHERE \"titel\" >= 'a'") },
        { try $0.execute("DELETE FROM chat WHERE \"ti\"\"te`l\" >= 'a'") },
        { try $0.executeScript("SELECT 1; DELETE FROM chat WHERE \"titel\" >= 'a'") },
        { try $0.execute("WITH c AS (SELECT 1) DELETE FROM chat WHERE uid = \"uid \" OR \"uidd\" = \"uidd\"") },
    ]

    @Test("A misspelled name in quotes deletes nothing in a store", arguments: 0..<5)
    func misspelledName(number: Int) async throws {
        let store = try await StoreFixture(folder).open()
        try await store.insert("kept")
        let error = try await failure(DatabaseError.self) { try await store.write(Self.misspelled[number]) }
        #expect(error.message.hasPrefix("no such column: "))
        #expect(error.sql?.contains("`ti\"te") != true)
        #expect(try await store.bodies() == ["kept"])
    }

    @Test("A misspelled name in quotes deletes nothing in a launch hook", arguments: 0..<5)
    func misspelledNameInHook(number: Int) async throws {
        var fixture = StoreFixture(folder)
        try await fixture.open().insert("kept")
        fixture.configuration.launch.everyLaunch = Self.misspelled[number]
        _ = try await failure(StoreError.self) { try await fixture.open() }
        fixture.configuration.launch.everyLaunch = nil
        #expect(try await fixture.open().bodies() == ["kept"])
    }

    @Test(
        "A misspelled name in a new definition throws in a store and in a hook",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_029_000),
        arguments: ["CREATE INDEX i ON chat(\"titel\")", "CREATE TABLE t(a CHECK (\"titel\" > 0))"])
    func misspelledDefinition(statement: String) async throws {
        var fixture = StoreFixture(folder)
        let store = try await fixture.open()
        let run: @Sendable (Connection) throws -> Void = { try $0.execute(SQL(text: statement)) }
        #expect(try await failure(DatabaseError.self) { try await store.write(run) }.code == 1)
        await store.close()
        fixture.configuration.launch.everyLaunch = run
        #expect(try await failure(StoreError.self) { try await fixture.open() }.underlying?.code == 1)
    }

    @Test func `A name in double quotes is a name in a store`() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.write { db in
            try db.execute("CREATE TABLE \"a \"\"b`\" (\"c d\" TEXT DEFAULT \"e\")")
            try db.execute("INSERT INTO \"a \"\"b`\" (\"c d\") VALUES ('\"f\"')")
            #expect(try db.values(String.self, "SELECT \"c d\" FROM \"a \"\"b`\" -- \"") == ["\"f\""])
            let sql = try db.value(String.self, "SELECT sql FROM sqlite_master WHERE name LIKE 'a %'")
            #expect(sql?.contains("(\"c d\" TEXT DEFAULT \"e\")") == true)
        }
    }

    @Test func `A trigger and a view with strings in double quotes go on working in a store`() async throws {
        let fixture = StoreFixture(folder)
        try fixture.writeLegacy()
        let legacy = try fixture.connection(isEncrypted: false)
        legacy.allowDoubleQuotedStrings()
        try legacy.execute("CREATE TABLE log(line TEXT)")
        try legacy.execute(
            "CREATE TRIGGER logged AFTER INSERT ON chat BEGIN INSERT INTO log VALUES (\"new \" || new.body); END")
        try legacy.execute("CREATE VIEW short AS SELECT body || \"!\" AS line FROM chat")
        legacy.close()
        let store = try await fixture.open()
        try await store.insert("row")
        #expect(try await store.read { try $0.values(String.self, "SELECT line FROM log") } == ["new row"])
        #expect(try await store.read { try $0.values(String.self, "SELECT \"line\" FROM short") } == ["old!", "row!"])
    }

    // MARK: Changes that would outlast the closure

    static let outlasting = [
        "COMMIT", "END", "ROLLBACK", "BEGIN", "ATTACH ':memory:' AS other", "PRAGMA query_only = OFF",
        "PRAGMA query_only(0)", "PRAGMA main.query_only = OFF", "PRAGMA journal_mode = DELETE",
        "PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF", "PRAGMA writable_schema = ON",
        "PRAGMA busy_timeout = 1", "CREATE TEMP TABLE chat (uid, body)", "CREATE TABLE temp.pick AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TEMP TRIGGER t BEFORE INSERT ON main.chat BEGIN SELECT raise(IGNORE); END",
    ]

    @Test("A statement with an effect beyond its closure is refused before it runs", arguments: outlasting)
    func refused(statement: String) async throws {
        let store = try await StoreFixture(folder).open()
        let runs: [@Sendable (Connection) throws -> Void] = [
            { try $0.execute(SQL(text: statement)) }, { try $0.execute(SQL(text: "EXPLAIN " + statement)) },
        ]
        for run in runs {
            let inRead = try await failure(DatabaseError.self) { try await store.read(run) }
            let inWrite = try await failure(DatabaseError.self) {
                try await store.write { db in
                    try db.execute("INSERT INTO chat VALUES ('ana', 'no')")
                    try run(db)
                }
            }
            #expect(inRead.code == 23)
            #expect(inWrite.code == 23)
        }
        #expect(try await store.bodies().isEmpty)
    }

    @Test func `A write that throws keeps nothing, although it tried to commit`() async throws {
        let store = try await StoreFixture(folder).open()
        await #expect(throws: AppError()) {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'lost')")
                try? db.execute("COMMIT")
                throw AppError()
            }
        }
        #expect(try await store.bodies().isEmpty)
    }

    static let secret = "hunter2"
    static let keyPragmas = [
        "rekey = '\(secret)'", "key = '\(secret)'", "hexkey = '\(secret)'", "hexrekey = '\(secret)'",
        "textkey = '\(secret)'", "textrekey = '\(secret)'", "main.rekey = '\(secret)'", "rekey('\(secret)')",
        "REKEY = \(secret)", "cipher_profile = '\(secret)'", "cipher_log = '\(secret)'", "cipher_log_level = DEBUG",
        "cipher_page_size = 1024", "cipher_default_kdf_iter = 1", "kdf_iter = 1", "cipher_migrate",
        "cipher_memory_security = OFF", "cipher_add_random = \"x'\(secret)'\"", "cipher_store_pass = 1",
    ]

    @Test("A closure cannot change a key or a setting of SQLCipher", arguments: keyPragmas)
    func refusedKey(pragma: String) async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.insert("kept")
        let run: @Sendable (Connection) throws -> Void = { try $0.execute(SQL(text: "PRAGMA " + pragma)) }
        let script: @Sendable (Connection) throws -> Void = {
            try $0.execute(SQL(text: "PRAGMA/**/" + pragma))
        }
        for body in [run, script] {
            for error in [
                try await failure(DatabaseError.self) { try await store.read(body) },
                try await failure(DatabaseError.self) { try await store.write(body) },
            ] {
                #expect(error.code == 23)
                #expect(!"\(error) \(error.localizedDescription)".contains(Self.secret))
            }
        }
        await store.close()
        #expect(try await fixture.open().bodies() == ["kept"])
    }

    @Test func `Pragmas that read, and those that the transaction undoes, run in closures`() async throws {
        let store = try await StoreFixture(folder).open()
        let reading: @Sendable (Connection) throws -> Void = { db in
            for pragma in [
                "user_version", "table_info(chat)", "foreign_key_check", "quick_check", "cipher_version",
                "journal_mode", "query_only", "index_list('chat')",
            ] {
                try db.execute(SQL(text: "PRAGMA \(pragma)"))
            }
            if Engine.current.sqliteVersionNumber >= 3_016_000 {
                try db.execute("SELECT * FROM pragma_table_info('chat')")
            }
        }
        try await store.read(reading)
        try await store.write(reading)
        await #expect(throws: AppError()) {
            try await store.write { db in
                try db.execute("PRAGMA application_id = 7")
                throw AppError()
            }
        }
        try await store.write { db in
            #expect(try db.value(Int.self, "PRAGMA application_id") == 0)
            try db.execute("PRAGMA defer_foreign_keys = ON")
            try db.transaction { try db.execute("INSERT INTO chat VALUES ('ana', 'nested')") }
        }
        #expect(try await store.bodies() == ["nested"])
    }

    // MARK: A connection that leaves its closure

    @Test("A connection that escaped its closure is refused", arguments: [true, false])
    func leaked(isWrite: Bool) async throws {
        let store = try await StoreFixture(folder).open()
        let leak = Leak()
        let body: @Sendable (Connection) throws -> Void = { leak.connection = $0 }
        isWrite ? try await store.write(body) : try await store.read(body)
        let uses: [@Sendable (Connection) throws -> Void] = [
            { try $0.execute("SELECT 1") }, { try $0.executeScript("SELECT 1") }, { try $0.transaction {} },
            { try $0.savepoint {} }, { _ = try $0.value(Int.self, "SELECT 1") },
        ]
        let connection = try #require(leak.connection)
        for use in uses {
            #expect(try await failure(DatabaseError.self) { try use(connection) }.code == 21)
        }
        #expect(connection.changes == 0 && connection.lastInsertedRowID == 0 && !connection.isInTransaction)
        await store.close()
        for use in uses {
            #expect(try await failure(DatabaseError.self) { try use(connection) }.code == 21)
        }
    }

    @Test func `Another thread than the closure's is refused`() async throws {
        let store = try await StoreFixture(folder).open()
        let code = try await store.read { db in
            let leak = Leak()
            leak.connection = db
            let done = Gate()
            Thread.detachNewThread {
                do { try leak.connection?.execute("SELECT 1") } catch { leak.code = (error as? DatabaseError)?.code }
                done.arrive()
            }
            done.block()
            try db.execute("SELECT 1")
            return leak.code
        }
        #expect(code == 21)
    }

    @Test func `A connection that has left a launch hook is refused`() async throws {
        var fixture = StoreFixture(folder)
        let leak = Leak()
        fixture.configuration.launch.everyLaunch = { leak.connection = $0 }
        let store = try await fixture.open()
        let connection = try #require(leak.connection)
        #expect(try await failure(DatabaseError.self) { try connection.execute("SELECT 1") }.code == 21)
        await store.close()
    }

    @Test func `A backfill's closure gets what any other gets`() async throws {
        let store = try await StoreFixture(folder).open()
        try await store.insert("kept")
        let leak = Leak()
        let bodies: [@Sendable (Connection) throws -> Void] =
            Self.misspelled + [
                { try $0.execute("COMMIT") }, { try $0.execute("PRAGMA rekey = 'x'") },
            ]
        for body in bodies {
            _ = try await failure(DatabaseError.self) {
                try await store.backfill("work", of: "chat") { db, _ in
                    leak.connection = db
                    try body(db)
                }
            }
            let connection = try #require(leak.connection)
            #expect(try await failure(DatabaseError.self) { try connection.execute("SELECT 1") }.code == 21)
        }
        #expect(try await store.bodies() == ["kept"])
    }

    @Test func `A migration step's closure gets what a hook's gets`() async throws {
        var fixture = StoreFixture(folder)
        try fixture.writeLegacy()
        let leak = Leak()
        for body in Self.misspelled {
            let step = MigrationSteps.Update(
                4,
                .swift { db in
                    leak.connection = db
                    try body(db)
                })
            fixture.configuration = Configuration(
                databaseName: "app.db", version: 4, recordedVersion: .userVersion,
                schema: .steps(MigrationSteps(numbering: .appVersions, baseline: .sql([]), updates: [step])))
            _ = try await failure(StoreError.self) { try await fixture.open() }
            let connection = try #require(leak.connection)
            #expect(try await failure(DatabaseError.self) { try connection.execute("SELECT 1") }.code == 21)
        }
        let legacy = try fixture.connection(isEncrypted: false)
        #expect(try legacy.values(String.self, "SELECT body FROM chat") == ["old"])
    }

    // MARK: Nested stores

    @Test func `A store that an outer closure holds is refused inside of another store's closure`() async throws {
        var fixture = StoreFixture(folder)
        let store = try await fixture.open()
        fixture.configuration.databaseName = "other.db"
        let other = try await fixture.open()
        let calls: [@Sendable (EncryptedStore) throws -> Void] = [
            { try $0.writeBlocking { _ in } }, { try $0.readBlocking { _ in } }, { try $0.closeBlocking() },
        ]
        for call in calls {
            let error = try await failure(StoreError.self) {
                try await store.write { _ in try other.writeBlocking { _ in try call(store) } }
            }
            #expect(error.code == .misuse)
        }
        try await store.insert("usable")
        try await other.insert("usable")
    }

    @Test("If closures call each other's stores in a circle, one call is refused", arguments: [true, false])
    func circle(isWrite: Bool) async throws {
        var fixture = StoreFixture(folder)
        fixture.options.maximumReaders = 1
        var stores: [EncryptedStore] = []
        for name in ["a.db", "b.db", "c.db"] {
            fixture.configuration.databaseName = name
            stores.append(try await fixture.open())
        }
        // All closures run before any of them calls the next store.
        let running = Gate()
        let codes = await withTaskGroup { [stores] group in
            for (number, store) in stores.enumerated() {
                let next = stores[(number + 1) % stores.count]
                let body: @Sendable (Connection) throws -> Void = { _ in
                    running.arrive()
                    running.block(until: 3)
                    isWrite ? try next.writeBlocking { _ in } : try next.readBlocking { _ in }
                }
                group.addTask {
                    do {
                        isWrite ? try await store.write(body) : try await store.read(body)
                        return nil as StoreError.Code?
                    } catch {
                        return (error as? StoreError)?.code ?? .inputOutput
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil } == 2)
        #expect(codes.count { $0 == .misuse } == 1)
        for store in stores { try await store.insert("usable") }
    }
}
