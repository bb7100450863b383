internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The history of a database, and what is done about drift.
struct StoreHistoryTests {
    let folder: TemporaryFolder
    var configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opening(_ configuration: Configuration? = nil) throws -> StoreOpening {
        try StoreOpening(
            configuration: configuration ?? self.configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
    }

    private func with<Result>(_ mode: Connection.Mode = .readWrite, _ body: (Connection) throws -> Result) throws
        -> Result
    {
        let connection =
            configuration.encryption.isEnabled
            ? try Connection(
                path: folder.path("app.db"), mode: mode, key: TestKeys.raw(), settings: CipherSettings())
            : try Connection(path: folder.path("app.db"), mode: mode)
        defer { connection.close() }
        return try body(connection)
    }

    private func change(_ script: String) throws {
        try with { try $0.executeScript(text: script) }
    }

    private func validate(_ configuration: Configuration? = nil) throws -> SchemaValidation {
        let before = try FolderDigest(folder.url)
        let found = try opening(configuration).validate()
        #expect(try FolderDigest(folder.url) == before)
        return found
    }

    private func history(_ configuration: Configuration? = nil) throws -> [String] {
        try opening(configuration).history().items.map { item in
            [item.state.rawValue, item.name, item.version?.description].compactMap { $0 }.joined(separator: " ")
        }
    }

    // MARK: Validating

    @Test("Every event that records a version also records the resulting schema", arguments: [true, false])
    func recordsSchema(isEncrypted: Bool) throws {
        var fixture = self
        fixture.configuration.encryption.isEnabled = isEncrypted
        _ = try fixture.opening().run()
        #expect(try fixture.validate().isValid)
        var later = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT", "draft": "TEXT"]], version: 26)
        later.encryption.isEnabled = isEncrypted
        _ = try fixture.opening(later).run()
        #expect(try fixture.validate(later).isValid)
        try fixture.with { connection in
            let texts = try connection.values(
                String.self, "SELECT schema FROM cipherstore_history WHERE schema IS NOT NULL ORDER BY id")
            #expect(texts.count == 2)
            #expect(try texts.map { try SchemaRecord(json: $0).schema.objects.first?.columns?.count } == [2, 3])
        }
    }

    @Test("Validating lists the drift, object by object, and changes nothing")
    func drift() throws {
        _ = try opening().run()
        try change("CREATE INDEX i ON chat(uid); ALTER TABLE chat ADD COLUMN x; CREATE VIEW v AS SELECT 1")
        let found = try validate()
        #expect(!found.isValid)
        #expect(
            found.sentences == [
                "table chat: column x is not recorded", "index i is not recorded", "view v is not recorded",
            ])
    }

    @Test("A version that other code changed is drift, and a future version is a note")
    func versions() throws {
        _ = try opening().run()
        var later = configuration
        later.version = 27
        #expect(try validate(later).isValid)
        #expect(try validate(later).notes == ["the migration to version 27 is pending; the database has version 25"])
        try change("PRAGMA user_version = 24")
        #expect(try validate().sentences == ["user_version is 24, but the history records version 25"])
        later.version = 20
        #expect(
            try validate(later).sentences.last
                == "the database has version 25, but the configuration supports versions up to 20")
    }

    @Test("If nothing is recorded, validating and repairing are refused with advice")
    func nothingRecorded() throws {
        try writeExisting()
        let before = try FolderDigest(folder.url)
        let validation = try storeError { try opening().validate() }
        #expect(validation?.code == .migration)
        #expect(validation?.advice.contains("baseline") == true)
        #expect(try storeError { try opening().repair() }?.code == .migration)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A damaged record is a typed error, and repairing replaces it")
    func damagedRecord() throws {
        _ = try opening().run()
        try change("UPDATE cipherstore_history SET schema = '{\"half'")
        #expect(try storeError { try opening().validate() }?.code == .migration)
        #expect(try opening().repair().event == .repaired)
        #expect(try validate().isValid)
    }

    // MARK: Baseline

    private func writeExisting() throws {
        try with(.create) { connection in
            try connection.executeScript("CREATE TABLE chat(uid TEXT, body TEXT); CREATE TABLE other(x);")
        }
    }

    @Test("A baseline records version and schema and runs nothing, and later migrations start from it")
    func baseline() throws {
        try with(.create) { try $0.executeScript("CREATE TABLE chat(uid TEXT); INSERT INTO chat VALUES ('ana')") }
        let change = try opening().baseline(at: 24)
        #expect(change.event == .baselined)
        #expect(try history() == ["applied baselined 24", "pending schema 25"])
        #expect(try validate().isValid)
        #expect(try with { try ColumnState.read(table: "chat", from: $0).map(\.name) } == ["uid"])
        let report = try opening().run().report
        #expect(report.migration.from == 24)
        #expect(report.migration.event == .migrated)
        #expect(report.migration.applied.map(\.kind) == [.addColumn, .stamp])
    }

    @Test("A version with dots is declared only in the history")
    func dottedBaseline() throws {
        try writeExisting()
        var configuration = configuration
        configuration.version = try #require(SchemaVersion("1.10.0"))
        let version = try #require(SchemaVersion("1.9.2"))
        #expect(try opening(configuration).baseline(at: version).version == version)
        #expect(try history(configuration) == ["applied baselined 1.9.2", "pending schema 1.10.0"])
        #expect(try with { try $0.value(Int.self, "PRAGMA user_version") } == 0)
    }

    @Test("A baseline is refused if a version is recorded, for a future version, and on a file to be encrypted")
    func refusedBaselines() throws {
        #expect(try storeError { try opening().baseline() }?.code == .missingFile)
        try LegacyFile.write(folder.path("app.db"), script: "CREATE TABLE chat(uid TEXT, body TEXT)")
        #expect(try storeError { try opening().baseline() }?.code == .unexpectedPlaintext)
        _ = try opening().run()
        let before = try FolderDigest(folder.url)
        #expect(try storeError { try opening().baseline() }?.code == .migration)
        #expect(try storeError { try opening().baseline(at: 26) }?.code == .configuration)
        #expect(try FolderDigest(folder.url) == before)
    }

    // MARK: Repair

    @Test("A repair names the drift and records it as intended, and writes nothing if there is none")
    func repair() throws {
        _ = try opening().run()
        let before = try FolderDigest(folder.url)
        #expect(try opening().repair().event == nil)
        #expect(try FolderDigest(folder.url) == before)
        try change("CREATE INDEX i ON chat(uid); PRAGMA user_version = 24")
        let change = try opening().repair()
        #expect(change.event == .repaired)
        #expect(change.version == 25)
        #expect(
            change.details == ["index i is not recorded", "user_version is 24, but the history records version 25"])
        #expect(try validate().isValid)
        #expect(try history() == ["applied created 25", "applied repaired 25"])
        #expect(try opening().run().report.migration.to == 25)
    }

    @Test("A database newer than the configuration is not repaired")
    func newerDatabase() throws {
        _ = try opening().run()
        var older = configuration
        older.version = 20
        #expect(try storeError { try opening(older).repair() }?.code == .downgrade)
        #expect(try history(older) == ["future created 25"])
    }

    @Test("A history started by an earlier release is continued, and repairing adds its schema")
    func earlierRelease() throws {
        try with(.create) { connection in
            try connection.executeScript(
                """
                CREATE TABLE chat(uid TEXT, body TEXT);
                CREATE TABLE cipherstore_history (id INTEGER PRIMARY KEY, event TEXT NOT NULL, fromVersion TEXT,
                    toVersion TEXT, checksum TEXT, detail TEXT, engine TEXT, appliedAt TEXT NOT NULL);
                INSERT INTO cipherstore_history(event, toVersion, appliedAt) VALUES ('created', '25', '2026-01-01');
                PRAGMA user_version = 25;
                """)
        }
        #expect(try storeError { try opening().validate() }?.advice.contains("repair") == true)
        #expect(try opening().repair().details == ["no schema had been recorded"])
        #expect(try validate().isValid)
    }

    // MARK: Backfills

    @Test("A failed backfill is reported as failed until it is repaired or runs again")
    func failedBackfill() async throws {
        struct Wrong: Error {}
        let store = try await EncryptedStore.open(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        try await store.insert("one")
        await #expect(throws: Wrong.self) { try await store.backfill("words", of: "chat") { _, _ in throw Wrong() } }
        await store.close()
        #expect(try history() == ["applied created 25", "failed words"])
        #expect(try validate().notes == ["the backfill words of chat failed; 0 rows have been processed"])
        let change = try opening().repair()
        #expect(change.event == nil)
        #expect(change.details == ["the recorded failure of the backfill words was cleared"])
        #expect(try history() == ["applied created 25", "pending words"])
    }

    // MARK: Steps

    private struct Steps: SchemaSource {
        var recordedSteps: [SchemaStep]
        func plan(for state: DatabaseState) throws -> Plan { Plan(from: state.recorded, to: 3) }
    }

    @Test("A fresh install records all steps up to its version as applied")
    func stepsOfFreshInstall() throws {
        let steps = (1...4).map { SchemaStep(version: .init($0), name: "update \($0)", sql: ["SELECT \($0)"]) }
        try with(.create) { connection in
            let report = try SchemaMigrator(version: 3, source: Steps(recordedSteps: steps)).migrate(connection) { nil }
            #expect(report.event == .created)
            #expect(try SchemaRecord.latest(connection)?.record.steps == Array(steps.prefix(3)))
        }
    }
}
