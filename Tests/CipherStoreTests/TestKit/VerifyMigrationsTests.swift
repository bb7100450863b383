internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
internal import CipherStoreTestKit
import CipherTestSupport
import Foundation
import Testing

@Suite("Verifying migrations")
struct VerifyMigrationsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func fixture(_ name: String, _ script: String, key: CipherKey? = nil) throws -> URL {
        try LegacyFile.write(folder.path(name), key: key, script: script)
        return folder.url.appending(path: name)
    }

    private func failures(
        _ fixtures: [URL], _ configuration: Configuration, allowing allowed: AllowedDifferences = [],
        check: (@Sendable (EncryptedStore, URL) async throws -> Void)? = nil
    ) async throws -> [String] {
        do {
            try await verifyMigrations(from: fixtures, to: configuration, allowing: allowed, check: check)
            return []
        } catch let error as MigrationVerificationError {
            return error.description.split(separator: "\n").map(String.init)
        }
    }

    private static let current = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT NOT NULL DEFAULT ''"]])

    @Test("Without a fixture, the verification fails")
    func noFixtures() async throws {
        #expect(
            try await failure(StoreError.self) { try await verifyMigrations(from: [], to: Self.current) }.code
                == .misuse)
    }

    @Test("The example app's databases of every older version end with the schema of a fresh install")
    func exampleApp() async throws {
        var configuration = try Configuration(contentsOf: Repository.examples.appending(path: "ChatStore.plist"))
        configuration.encryption.unexpectedPlaintext = .encrypt
        let fixtures = ["chat-v22.db", "chat-v23.db", "chat-v23-wal.db", "chat-v24.db", "chat-v25.db"].map {
            Repository.fixtures.appending(path: $0)
        }
        let before = try FolderDigest(Repository.fixtures)
        try await verifyMigrations(from: fixtures, to: configuration, allowing: .additions) { store, _ in
            let rows = try await store.read { try $0.value(Int.self, "SELECT count(*) FROM chat") }
            #expect(rows == 18)
        }
        #expect(try FolderDigest(Repository.fixtures) == before)
        // Without that permission, the check lists the objects that the app no longer declares.
        let found = try await failures([fixtures[0]], configuration)
        #expect(found.contains("chat-v22.db: table attachment_cache is not part of a fresh install"))
        #expect(found.contains("chat-v22.db: index chat_by_user is not part of a fresh install"))
    }

    @Test("Differences from a fresh install are listed for each fixture")
    func differences() async throws {
        let fixtures = [
            try fixture("good.db", "CREATE TABLE chat(uid text); PRAGMA user_version = 1"),
            // The column contains a value, so it is not dropped.
            try fixture("column.db", "CREATE TABLE chat(uid TEXT, old TEXT); INSERT INTO chat VALUES ('ana', 'x')"),
            try fixture("order.db", "CREATE TABLE chat(body TEXT NOT NULL DEFAULT '', uid TEXT)"),
            try fixture("extra.db", "CREATE TABLE chat(uid TEXT); CREATE VIEW v AS SELECT uid FROM chat"),
            folder.url.appending(path: "missing.db"),
        ]
        let found = try await failures(fixtures, Self.current)
        #expect(
            found.prefix(3) == [
                "column.db: table chat: column old is not part of a fresh install",
                "order.db: table chat has its columns in a different order",
                "extra.db: view v is not part of a fresh install",
            ])
        #expect(found.count == 4 && found[3].hasPrefix("missing.db: "))
        let tolerated = [fixtures[0], fixtures[2], fixtures[3]]
        #expect(try await failures(tolerated, Self.current, allowing: [.additions, .columnOrder]).isEmpty)
        #expect(try folder.names.sorted() == ["column.db", "extra.db", "good.db", "order.db"])
    }

    @Test("A refused fixture and a check that throws are failures of that fixture")
    func refused() async throws {
        struct Wrong: Error {}
        let fixtures = [
            try fixture("newer.db", "CREATE TABLE chat(uid TEXT); PRAGMA user_version = 99"),
            try fixture("good.db", "CREATE TABLE chat(uid TEXT)"),
        ]
        let found = try await failures(fixtures, Self.current) { _, _ in throw Wrong() }
        #expect(found.count == 2)
        #expect(found[0].hasPrefix("newer.db: ") && found[0].contains("version 99"))
        #expect(found[1] == "good.db: Wrong()")
    }

    @Test("A fixture can be an encrypted file, or a folder with the files beside the database")
    func otherForms() async throws {
        let key = try ClosureKeyProvider.fixedTestKey.key(for: .existing, database: "")
        let encrypted = try fixture("encrypted.db", "CREATE TABLE chat(uid TEXT)", key: key)
        let other = try TemporaryFolder()
        try LegacyFile.write(other.path("app.db"), script: "CREATE TABLE chat(uid TEXT)")
        try other.write(
            "<plist version=\"1.0\"><dict><key>v</key><integer>7</integer></dict></plist>", to: "settings.plist")
        var configuration = Self.current
        configuration.recordedVersion = .propertyList(file: "settings.plist", key: "v")
        try await verifyMigrations(from: [other.url], to: configuration) { store, _ in
            #expect(store.report.migration.from == 7)
        }
        try await verifyMigrations(from: [encrypted], to: Self.current) { store, _ in
            #expect(store.report.outcome == .opened)
        }
    }
}
