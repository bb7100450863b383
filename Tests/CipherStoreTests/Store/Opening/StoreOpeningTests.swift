internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct StoreOpeningTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test("Opening a store creates a missing database, encrypted, and opens it again")
    func fresh() async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open()
        #expect(store.report.outcome == .created)
        #expect(store.report.warnings.besidesLeases.isEmpty)
        try await store.insert("first")
        await store.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path)).prefix(6) != Data("SQLite".utf8))

        let again = try await fixture.open()
        #expect(again.report.outcome == .opened)
        #expect(try await again.bodies() == ["first"])
        #expect(again.path.hasSuffix("/app.db"))
    }

    @Test("Opening a store encrypts a legacy file and keeps its rows", arguments: ["DELETE", "WAL"])
    func legacy(journalMode: String) async throws {
        let fixture = StoreFixture(folder)
        try fixture.writeLegacy(journalMode: journalMode)
        let store = try await fixture.open()
        #expect(store.report.outcome == .encrypted)
        #expect(store.report.isUpdate)
        #expect(try await store.bodies() == ["old"])
        try await store.insert("new")
        await store.close()
        #expect(try await fixture.open().bodies() == ["old", "new"])
    }

    @Test(
        "Opening a store leaves the legacy file unchanged if the schema migration after the encryption fails",
        arguments: ["DELETE", "WAL"])
    func failsToMigrate(journalMode: String) async throws {
        struct Refusal: Error {}
        var fixture = StoreFixture(folder)
        try fixture.writeLegacy(journalMode: journalMode)
        let before = try legacyContent(fixture)
        let bytes = try FolderDigest(folder.url)
        fixture.configuration.launch.upgrade = { db, _, _ in
            try db.execute("DELETE FROM chat")
            throw Refusal()
        }
        let error = try await failure(StoreError.self) { try await fixture.open() }
        #expect(error.code == .migration)
        #expect(error.path == fixture.path)
        #expect(error.advice == "correct the step; nothing was changed")
        // The log was copied into its file, as SQLite does when the last connection closes.
        if journalMode == "DELETE" { #expect(try FolderDigest(folder.url) == bytes) }
        #expect(try folder.names == ["app.db"])
        #expect(try legacyContent(fixture) == before)

        fixture.configuration.launch.upgrade = nil
        #expect(try await fixture.open().bodies() == ["old"])
    }

    @Test(
        "SQL that fails in an app's Swift code is reported with the advice to correct the step",
        arguments: ["UPDATE chat SET nosuch = 1", "INSERT INTO chat(id) SELECT id FROM chat"])
    func failsInSwift(sql: String) async throws {
        var fixture = StoreFixture(folder)
        try fixture.writeLegacy(journalMode: "DELETE")
        let before = try FolderDigest(folder.url)
        fixture.configuration.launch.upgrade = { db, _, _ in try db.execute(SQL(text: sql)) }
        let error = try await failure(StoreError.self) { try await fixture.open() }
        #expect(error.code == .migration)
        #expect(error.advice == "correct the step; nothing was changed")
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test(
        "Opening a store leaves no new database behind if creating its schema fails", arguments: [true, false],
        [true, false])
    func failsToCreate(isEncrypted: Bool, isFileThere: Bool) async throws {
        struct Refusal: Error {}
        var fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        if isFileThere { try folder.write("", to: "app.db") }
        let before = try FolderDigest(folder.url)
        fixture.configuration.launch.firstInstall = { db in
            try db.execute("INSERT INTO chat VALUES (1, 2)")
            throw Refusal()
        }
        let error = try await failure(StoreError.self) { try await fixture.open() }
        #expect(error.code == .migration)
        #expect(error.path == fixture.path)
        #expect(error.advice.hasSuffix("nothing was changed"))
        #expect(try FolderDigest(folder.url) == before)

        fixture.configuration.launch.firstInstall = nil
        let store = try await fixture.open()
        #expect(store.report.outcome == .created)
        #expect(try await store.bodies().isEmpty)
        await store.close()
        #expect(try await fixture.open().report.outcome == (isEncrypted ? .opened : .openedPlaintext))
    }

    /// Returns everything in the plaintext file, and its journal mode.
    private func legacyContent(_ fixture: StoreFixture) throws -> DatabaseDump {
        let connection = try Connection(path: fixture.path, mode: .readWrite)
        defer { connection.close() }
        return try DatabaseDump(connection)
    }

    static let empty = [
        (
            "CREATE TABLE chat(uid TEXT, body TEXT); PRAGMA user_version = 3",
            "version 3 was recorded, but every table was e"
        ),
        ("CREATE TABLE a(b); DROP TABLE a", "the encrypted file was not created by CipherStore and had no tables"),
        ("CREATE TABLE chat(uid TEXT, body TEXT); INSERT INTO chat VALUES (1, 2); PRAGMA user_version = 3", nil),
        ("CREATE TABLE chat(uid TEXT, body TEXT)", "no version was recorded and every table was empty"),
    ]

    @Test("Opening a store warns once about the app's own encrypted file if it is empty", arguments: empty)
    func emptyEncrypted(script: String, warning: String?) async throws {
        let fixture = StoreFixture(folder)
        try LegacyFile.write(fixture.path, key: TestKeys.raw(), script: script)
        let store = try await fixture.open()
        #expect(store.report.outcome == .opened)
        #expect(store.report.warnings.besidesLeases.count == (warning == nil ? 0 : 1))
        if let warning { #expect(store.report.warnings.besidesLeases.first?.hasPrefix(warning) == true) }
        await store.close()
        #expect(try await fixture.open().report.warnings.besidesLeases.isEmpty)
    }

    @Test("Opening a store opens a plaintext file as it is if encryption is off")
    func disabled() async throws {
        let fixture = StoreFixture(folder, isEncrypted: false)
        try fixture.writeLegacy()
        let store = try await fixture.open()
        #expect(store.report.outcome == .openedPlaintext)
        #expect(try await store.read { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        try await store.insert("new")
        await store.close()
        let connection = try fixture.connection(isEncrypted: false)
        defer { connection.close() }
        #expect(try connection.values(String.self, "SELECT body FROM chat") == ["old", "new"])
    }

    @Test("Opening a store requests the key no more often than necessary, however many connections are opened")
    func keyIsAskedForOnce() async throws {
        let fixture = StoreFixture(folder)
        await (try fixture.open()).close()
        let asked = Gate()
        let provider = ClosureKeyProvider { _, _ in
            asked.arrive()
            return try TestKeys.raw()
        }
        let store = try await fixture.open(provider)
        #expect(try await store.bodies().isEmpty)
        #expect(asked.count == 1)
    }

    @Test("Opening a store works with a passphrase")
    func passphrase() async throws {
        let fixture = StoreFixture(folder)
        let provider = TestKeys.provider { try TestKeys.passphrase() }
        let store = try await fixture.open(provider)
        try await store.insert("one")
        await store.close()
        let again = try await fixture.open(provider)
        #expect(try await again.bodies() == ["one"])
        let error = try await failure(StoreError.self) { try await fixture.open() }
        #expect(error.code == .keyDoesNotFit)
    }

    @Test("Opening a store refuses a missing directory, a URL that is not a file URL, and options without readers")
    func badArguments() async throws {
        var fixture = StoreFixture(folder)
        let missing = folder.url.appending(path: "missing")
        for (directory, code) in [(missing, StoreError.Code.missingFile), (try web(), .configuration)] {
            let error = try await failure(StoreError.self) {
                try await EncryptedStore.open(
                    fixture.configuration, directory: directory, keyProvider: TestKeys.provider())
            }
            #expect(error.code == code)
        }
        fixture.options.maximumReaders = 0
        let error = try await failure(StoreError.self) { try await fixture.open() }
        #expect(error.code == .configuration)
    }

    private func web() throws -> URL { try #require(URL(string: "https://example.org/")) }

    @Test("Opening a store has a blocking counterpart for code that cannot await")
    func blocking() throws {
        let fixture = StoreFixture(folder)
        let store = try EncryptedStore.openBlocking(
            fixture.configuration, directory: folder.url, keyProvider: TestKeys.provider())
        try store.writeBlocking { try $0.execute("INSERT INTO chat VALUES ('ana', 'one')") }
        #expect(try store.readBlocking { try $0.values(String.self, "SELECT body FROM chat") } == ["one"])
        try store.closeBlocking()
        try store.closeBlocking()
        #expect(throws: StoreError.self) { try store.readBlocking { $0.changes } }
    }

    // MARK: Cancellation

    @Test(
        "Opening a store leaves the legacy file unchanged if it is canceled before the swap", .timeLimit(.minutes(20)),
        arguments: [UpgradeStage.proving, .migrating, .swapping])
    func cancelled(stage: UpgradeStage) async throws {
        let fixture = StoreFixture(folder)
        try fixture.writeLegacy()
        let before = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        let (proving, cancelled) = (Gate(), Gate())
        let opening = Task {
            try await EncryptedStore.open(
                fixture.configuration, directory: folder.url, keyProvider: TestKeys.provider()
            ) { progress in
                guard progress.stage == stage else { return }
                proving.arrive()
                cancelled.block()
            }
        }
        await proving.wait()
        opening.cancel()
        cancelled.arrive()
        await #expect(throws: CancellationError.self) { try await opening.value }
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path)) == before)
        #expect(try folder.names == ["app.db"])
        #expect(try await fixture.open().report.outcome == .encrypted)
    }

    @Test("Opening a store changes nothing if it is canceled before it begins")
    func cancelledBeforehand() async throws {
        let fixture = StoreFixture(folder)
        let mayBegin = Gate()
        let opening = Task {
            await mayBegin.wait()
            return try await fixture.open()
        }
        opening.cancel()
        mayBegin.arrive()
        await #expect(throws: CancellationError.self) { try await opening.value }
        #expect(try folder.names.isEmpty)
    }

    // MARK: Journal modes

    @Test("Opening a store works without WAL mode while another process uses the file", arguments: [true, false])
    func otherUser(isEncrypted: Bool) async throws {
        var fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        await (try fixture.open()).close()
        let other = try fixture.connection(isEncrypted: isEncrypted)
        defer { other.close() }
        #expect(try other.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
        try other.execute("BEGIN")
        try other.proveReadable()

        fixture.options.busyTimeout = .milliseconds(1)
        let store = try await fixture.open()
        #expect(store.report.warnings.besidesLeases.count == 1)
        #expect(try await store.bodies().isEmpty)
        let error = try await failure(DatabaseError.self) { try await store.insert("too early") }
        #expect(error.code == 5)
        try other.execute("COMMIT")
        try await store.insert("now")
        #expect(try await store.bodies() == ["now"])
    }

    @Test("Opening a store works without WAL mode if there is no shared memory", arguments: [true, false])
    func noSharedMemory(isEncrypted: Bool) async throws {
        let fixture = StoreFixture(folder, isEncrypted: isEncrypted)
        await (try fixture.open()).close()
        let other = try fixture.connection(isEncrypted: isEncrypted)
        #expect(try other.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
        other.close()
        // A name that SQLite cannot open represents a file system without memory mapping.
        try FileManager.default.createSymbolicLink(
            atPath: fixture.path + "-shm", withDestinationPath: "missing/folder")

        let store = try await fixture.open()
        #expect(store.report.warnings.besidesLeases.count == 1)
        try await store.insert("one")
        #expect(try await store.bodies() == ["one"])
        await store.close()
        #expect(try await fixture.open().bodies() == ["one"])
    }
}
