internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("An in-memory store", .timeLimit(.minutes(20)))
struct MemoryStoreTests {
    private let configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])

    @Test("An in-memory store has the schema, reads and writes, and is a separate database")
    func twoStores() async throws {
        let (store, other) = (
            try await EncryptedStore.inMemory(configuration), try await EncryptedStore.inMemory(configuration)
        )
        #expect(store.report.outcome == .created)
        try await store.insert("one")
        #expect(try await store.bodies() == ["one"])
        #expect(try await other.bodies().isEmpty)
        let lasting = Task {
            try await withThrowingTaskGroup { group in
                for number in 0..<50 {
                    group.addTask { try await store.insert("\(number)") }
                    group.addTask { _ = try await store.bodies() }
                }
                try await group.waitForAll()
            }
        }
        try await lasting.value
        #expect(try await store.bodies().count == 51)
        #expect(try await store.checkpoint())
        await store.close()
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .closed)
    }

    @Test("An in-memory store refuses a write in a read, and rolls back a write that throws")
    func refusals() async throws {
        let store = try await EncryptedStore.inMemory(configuration)
        let error = try await failure(DatabaseError.self) {
            try await store.read { try $0.execute("INSERT INTO chat VALUES ('ana', 'no')") }
        }
        #expect(error.code == 8)
        struct AppError: Error {}
        await #expect(throws: AppError.self) {
            try await store.write { db in
                try db.execute("INSERT INTO chat VALUES ('ana', 'undone')")
                throw AppError()
            }
        }
        try await store.insert("kept")
        #expect(try await store.bodies() == ["kept"])
    }

    @Test("An in-memory store keeps its content during a suspension and work without a transaction, and is observed")
    func lasts() async throws {
        let store = try await EncryptedStore.inMemory(configuration)
        var iterator = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        try await store.insert("one")
        #expect(try await iterator.next() == 1)
        await store.suspend()
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .suspended)
        store.resume()
        try await store.writeWithoutTransaction { try $0.execute("VACUUM") }
        try await store.insert("two")
        #expect(try await iterator.next() == 2)
        #expect(try await store.bodies() == ["one", "two"])
        #expect(try await store.read { try $0.value(Int.self, "PRAGMA foreign_keys") } == 1)
        #expect(
            try await failure(StoreError.self) { try await store.withConnectionsClosed { _, _ in } }.code == .misuse)
    }

    @Test("An in-memory store runs the hooks of a first install")
    func hooks() async throws {
        var configuration = configuration
        configuration.launch.everyLaunch = { try $0.execute("INSERT INTO chat VALUES ('hook', 'ran')") }
        let store = try EncryptedStore.inMemoryHere(configuration)
        #expect(try await store.bodies() == ["ran"])
    }
}

extension EncryptedStore {
    /// Blocks, which an async function may not do directly.
    fileprivate static func inMemoryHere(_ configuration: Configuration) throws -> EncryptedStore {
        try inMemoryBlocking(configuration)
    }
}

@Suite("A read-only store", .timeLimit(.minutes(20)))
struct ReadOnlyStoreTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func openReadOnly(_ fixture: StoreFixture) async throws -> EncryptedStore {
        try await EncryptedStore.openReadOnly(
            fixture.configuration, directory: folder.url, keyProvider: TestKeys.provider(), options: fixture.options)
    }

    /// Returns the content of the database's files.
    private func contents() throws -> [String: Data] {
        try Dictionary(
            uniqueKeysWithValues: folder.names.map { ($0, try Data(contentsOf: URL(filePath: folder.path($0)))) })
    }

    @Test(
        "A read-only store reads the database, writes nothing, and leaves nothing beside the file",
        arguments: [true, false])
    func reads(isEncrypted: Bool) async throws {
        let fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        let app = try await fixture.open()
        try await app.insert("one")
        await app.close()
        let before = try contents()
        #expect(before.count == 1)
        let store = try await openReadOnly(fixture)
        #expect(try await store.bodies() == ["one"])
        #expect(try contents() == before)
        let writes: [() async throws -> Void] = [
            { try await store.insert("no") }, { try await store.writeWithoutTransaction { _ in } },
            { try await store.checkpoint() }, { try await store.backfill("b", of: "chat") { _, _ in } },
        ]
        for write in writes { #expect(try await failure(StoreError.self, write).code == .readOnly) }
        let inRead = try await failure(DatabaseError.self) {
            try await store.read { try $0.execute("INSERT INTO chat VALUES ('a', 'b')") }
        }
        #expect(inRead.code == 8)
        #expect(
            try await failure(DatabaseError.self) { try await store.read { try $0.execute("COMMIT") } }.code == 23)
        await store.suspend()
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .suspended)
        store.resume()
        #expect(try await store.bodies() == ["one"])
        await store.close()
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .closed)
        #expect(try contents() == before)
    }

    @Test("A read-only store sees each commit of the app, and its observation sees it after a check for changes")
    func besideWriter() async throws {
        let fixture = StoreFixture(folder)
        let app = try await fixture.open()
        let store = try await openReadOnly(fixture)
        var iterator = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        for number in 1...20 {
            try await app.insert("\(number)")
            #expect(try await store.bodies().count == number)
            try await store.checkForChanges()
            #expect(try await iterator.next() == number)
        }
        await app.close()
        #expect(try await store.bodies().count == 20)
        #expect(try folder.names == ["app.db"])
    }

    @Test("A read-only store without a file throws missingFile, and creates none")
    func missing() async throws {
        let fixture = StoreFixture(folder)
        #expect(try await failure(StoreError.self) { try await openReadOnly(fixture) }.code == .missingFile)
        #expect(try folder.names.isEmpty)
    }

    @Test("A read-only store refuses a file that must be upgraded first, with advice, and leaves it unchanged")
    func upgradeNeeded() async throws {
        var fixture = StoreFixture(folder)
        try fixture.writeLegacy()
        let legacy = try contents()
        let plaintext = try await failure(StoreError.self) { try await openReadOnly(fixture) }
        #expect(plaintext.code == .upgradeNeeded)
        #expect(plaintext.detail.contains("plaintext") && plaintext.advice.contains("EncryptedStore.open"))
        #expect(try contents() == legacy)
        await (try fixture.open()).close()
        let before = try contents()
        fixture.configuration = .declaring(["chat": ["uid": "TEXT", "body": "TEXT", "at": "REAL"]], version: 30)
        let old = try await failure(StoreError.self) { try await openReadOnly(fixture) }
        #expect(old.code == .upgradeNeeded)
        #expect(old.detail.contains("version 30"))
        #expect(try contents() == before)
    }

    @Test("A read-only store refuses a file that was replaced after the opening")
    func replaced() async throws {
        let fixture = StoreFixture(folder)
        await (try fixture.open()).close()
        let store = try await openReadOnly(fixture)
        try FileManager.default.copyItem(atPath: store.path, toPath: folder.path("copy"))
        try FileManager.default.moveItem(atPath: store.path, toPath: folder.path("kept"))
        try FileManager.default.moveItem(atPath: folder.path("copy"), toPath: store.path)
        #expect(try await failure(StoreError.self) { try await store.bodies() }.code == .replaced)
    }

    @Test("A read-only store reports a wrong key, and refuses a call from its own closure")
    func refusals() async throws {
        let fixture = StoreFixture(folder)
        await (try fixture.open()).close()
        let wrong = try await failure(StoreError.self) {
            try await EncryptedStore.openReadOnly(
                fixture.configuration, directory: folder.url,
                keyProvider: TestKeys.provider { try TestKeys.raw(8) })
        }
        #expect(wrong.code == .keyDoesNotFit)
        let store = try await openReadOnly(fixture)
        let nested = try await failure(StoreError.self) {
            try await store.read { _ in try store.readBlocking { _ in } }
        }
        #expect(nested.code == .misuse)
    }
}
