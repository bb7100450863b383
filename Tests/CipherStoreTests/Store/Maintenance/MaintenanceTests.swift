internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Swift code can do everything with a configuration that the command-line tool can.
struct MaintenanceTests {
    private let folder: TemporaryFolder
    private let configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make() async throws {
        let store = try await EncryptedStore.open(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        await store.close()
    }

    private func change(_ script: String, mode: Connection.Mode = .readWrite) throws {
        let connection = try Connection(
            path: folder.path("app.db"), mode: mode, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        try connection.executeScript(text: script)
    }

    /// Expects an error that leaves every byte unchanged.
    private func expectRefusal(
        _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async throws {
        let before = try FolderDigest(folder.url)
        let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try await body() }
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(try FolderDigest(folder.url) == before, sourceLocation: sourceLocation)
    }

    @Test(
        "A repair or baseline refused after a journal was rolled back does not claim that nothing was changed")
    func refusedAfterARollback() async throws {
        try LegacyFile.write(
            folder.path("app.db"), unclosed: true,
            script: """
                CREATE TABLE chat(uid TEXT, body TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO chat SELECT i, zeroblob(3000) FROM n;
                PRAGMA cache_size = 5; BEGIN; UPDATE chat SET body = 'changed';
                """)
        try #require(try folder.names == ["app.db", "app.db-journal"])
        for run in [false, true] {
            let error = try await failure(StoreError.self) {
                _ =
                    try await run
                    ? EncryptedStore.repair(configuration, directory: folder.url, keyProvider: TestKeys.provider())
                    : EncryptedStore.baseline(configuration, directory: folder.url, keyProvider: TestKeys.provider())
            }
            #expect(error.code == .unexpectedPlaintext)
            #expect(error.advice.hasSuffix("; no rows were changed"), "\(error.advice)")
        }
    }

    @Test("A plan describes what opening would do, with the meaning of each step, and changes nothing")
    func plan() async throws {
        let fresh = try await EncryptedStore.plan(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(fresh.step == .create)
        #expect(try folder.names.isEmpty)
        try await make()
        let before = try FolderDigest(folder.url)
        let later = Configuration.declaring(
            ["chat": ["uid": "TEXT", "body": "TEXT", "draft": "TEXT"]], version: 26)
        let plan = try await EncryptedStore.plan(later, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(plan.step == .open)
        #expect(plan.schema.from == 25)
        #expect(plan.schema.to == 26)
        #expect(plan.schema.operations.map(\.kind) == [.addColumn, .stamp])
        #expect(plan.schema.isRehearsed)
        #expect(try FolderDigest(folder.url) == before)
        let older = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]], version: 24)
        try await expectRefusal(.downgrade) {
            _ = try await EncryptedStore.plan(older, directory: folder.url, keyProvider: TestKeys.provider())
        }
    }

    @Test("Validating reports drift, repairing records it, and the history shows both")
    func drift() async throws {
        try await make()
        #expect(
            try await EncryptedStore.validate(
                configuration, directory: folder.url, keyProvider: TestKeys.provider()
            ).isValid)
        try change("CREATE INDEX i ON chat(uid)")
        let found = try await EncryptedStore.validate(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(!found.isValid)
        #expect(found.differences.map(\.name) == ["i"])
        #expect(found.sentences == ["index i is not recorded"])
        let change = try await EncryptedStore.repair(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(change.event == .repaired)
        #expect(change.details == ["index i is not recorded"])
        let history = try await EncryptedStore.history(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(history.version == 25)
        #expect(history.items.map(\.name) == ["created", "repaired"])
        #expect(history.items.allSatisfy { $0.kind == .event && $0.state == .applied })
    }

    @Test("A baseline declares an existing schema, and a second one is refused")
    func baseline() async throws {
        try change("CREATE TABLE chat(uid TEXT, body TEXT)", mode: .create)
        try await expectRefusal(.migration) {
            _ = try await EncryptedStore.validate(
                configuration, directory: folder.url, keyProvider: TestKeys.provider())
        }
        let change = try await EncryptedStore.baseline(
            at: 24, configuration, directory: folder.url, keyProvider: TestKeys.provider())
        #expect(change.event == .baselined)
        #expect(change.version == 24)
        try await expectRefusal(.migration) {
            try await EncryptedStore.baseline(
                configuration, directory: folder.url, keyProvider: TestKeys.provider())
        }
    }

    @Test("With a wrong key every maintenance call is refused")
    func anotherKey() async throws {
        try await make()
        let (configuration, url) = (configuration, folder.url)
        let other = TestKeys.provider { try TestKeys.raw(9) }
        for attempt in [
            { _ = try await EncryptedStore.plan(configuration, directory: url, keyProvider: other) },
            { _ = try await EncryptedStore.validate(configuration, directory: url, keyProvider: other) },
            { _ = try await EncryptedStore.history(configuration, directory: url, keyProvider: other) },
            { _ = try await EncryptedStore.baseline(configuration, directory: url, keyProvider: other) },
            { _ = try await EncryptedStore.repair(configuration, directory: url, keyProvider: other) },
        ] as [() async throws -> Void] {
            try await expectRefusal(.keyDoesNotFit) { try await attempt() }
        }
    }

    @Test("The blocking counterparts of the maintenance calls return the same results")
    func blocking() throws {
        try EncryptedStore.openBlocking(
            configuration, directory: folder.url, keyProvider: TestKeys.provider()
        ).closeBlocking()
        let (keys, url) = (TestKeys.provider(), folder.url)
        let before = try FolderDigest(url)
        #expect(try EncryptedStore.planBlocking(configuration, directory: url, keyProvider: keys).schema.isEmpty)
        #expect(try EncryptedStore.validateBlocking(configuration, directory: url, keyProvider: keys).isValid)
        #expect(try EncryptedStore.historyBlocking(configuration, directory: url, keyProvider: keys).version == 25)
        #expect(try EncryptedStore.repairBlocking(configuration, directory: url, keyProvider: keys).event == nil)
        let error = try storeError {
            try EncryptedStore.baselineBlocking(configuration, directory: url, keyProvider: keys)
        }
        #expect(error?.code == .migration)
        #expect(try FolderDigest(url) == before)
    }
}
