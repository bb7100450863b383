internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The report of a launch for the statistics of a rollout, and the shadow proof with which a rollout begins.
struct LaunchReportTests {
    private typealias Fixture = OpeningFixture

    private static func shadowing(maximumAttempts: Int = 5) -> Configuration {
        var encryption = Configuration.Encryption(
            isEnabled: false, sinceVersion: 24, maximumAttempts: maximumAttempts)
        encryption.shadow = true
        return Fixture.configuration(encryption)
    }

    private func encoded(_ report: LaunchReport) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let data = try encoder.encode(report)
        #expect(try JSONDecoder().decode(LaunchReport.self, from: data) == report)
        return String(decoding: data, as: UTF8.self)
    }

    @Test("The version before a launch is 0 for a new database, whatever the schema source is")
    func newDatabase() throws {
        let table = DeclaredTable(name: "t", columns: [.init(name: "a", definition: "INTEGER")])
        let sources: [Configuration.SchemaSourceKind] = [
            .none, .tables([table]),
            .steps(MigrationSteps(baseline: .sql(["CREATE TABLE t(a)"]))),
            .tableVersions([.init(name: "t", version: 1, definition: .sql("CREATE TABLE t(a)"))]),
        ]
        for source in sources {
            let configuration = Configuration(databaseName: "app.db", version: 1, schema: source)
            let report = try Fixture.open(TemporaryFolder(), configuration).report
            #expect(report.outcome == .created)
            #expect(report.migration.from == .zero, "\(source)")
            #expect(LaunchReport(report).versionBefore == "0", "\(source)")
        }
    }

    @Test("An upgrade is reported with its sizes, stages, versions and engine, and without a path")
    func upgrade() throws {
        let file = try Fixture.file(version: 23)
        let report = LaunchReport(try Fixture.open(file.folder).report)
        #expect(report.outcome == .encrypted)
        #expect(report.errorCode == nil)
        #expect(report.rows == 3)
        #expect(report.bytesBefore ?? 0 > 0)
        #expect(report.bytesAfter ?? 0 > 0)
        #expect(Set(report.stageSeconds.keys) == ["quiescing", "building", "proving", "migrating", "swapping"])
        #expect(report.versionBefore == "23")
        #expect(report.versionAfter == "26")
        #expect(report.cipherVersion == Engine.current.cipherVersion)
        let text = try encoded(report)
        #expect(!text.contains("app.db"))
        #expect(!text.contains("first"))
        #expect(LaunchReport(try Fixture.open(file.folder).report).outcome == .opened)
    }

    @Test("A failure is reported with its code and SQLite's code, and without its message")
    func failure() throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(8))
        let error = try #require(try storeError { try Fixture.open(file.folder) })
        let report = LaunchReport(error)
        #expect(report.outcome == .failed)
        #expect(report.errorCode == "keyDoesNotFit")
        #expect(report.stage == nil)
        #expect(try !encoded(report).contains("app.db"))
        #expect(LaunchReport(DatabaseError(extendedCode: 522, message: "secret")).sqliteCode == 522)
        #expect(try !encoded(LaunchReport(DatabaseError(extendedCode: 522, message: "secret"))).contains("secret"))
        #expect(LaunchReport(CancellationError()).errorCode == "cancelled")
        #expect(LaunchReport(CocoaError(.fileNoSuchFile)).errorCode == "other")
    }

    @Test("An upgrade that another program prevents is reported with its stage")
    func busy() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let writer = try Connection(path: file.path, mode: .readWrite)
        try writer.execute("BEGIN IMMEDIATE")
        let error = try #require(try storeError { try Fixture.open(file.folder) })
        writer.close()
        #expect(LaunchReport(error).errorCode == "busy")
        #expect(LaunchReport(error).stage == .quiescing)
    }

    @Test("With encryption off, a shadow proof is made and reported, and the file is opened as plaintext")
    func shadow() throws {
        let file = try Fixture.file(version: 23)
        let opened = try Fixture.open(file.folder, Self.shadowing())
        #expect(opened.report.outcome == .openedPlaintext)
        #expect(opened.report.encryption == nil)
        let report = LaunchReport(opened.report)
        #expect(report.outcome == .shadow)
        #expect(report.rows == 3)
        #expect(report.bytesAfter ?? 0 > 0)
        #expect(report.versionAfter == "26")
        #expect(try file.startsAsPlaintext)
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        #expect(try file.folder.names.allSatisfy { !$0.contains("-upgrade") && !$0.hasSuffix("-attempt") })
    }

    @Test("A launch with a shadow proof reports the warnings of the proof")
    func shadowWarnings() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE", extra: "CREATE INDEX i ON t(a);")
        let connection = try Connection(path: file.path, mode: .readWrite)
        try connection.execute("CREATE TEMP TABLE entry AS SELECT * FROM sqlite_master WHERE name = 'i'")
        try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'i'")
        try connection.execute("DELETE FROM t WHERE rowid = 9")
        try connection.editSchema("INSERT INTO sqlite_master SELECT * FROM entry")
        connection.close()
        let expected = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).shadow().warnings
        #expect(expected.contains { $0.hasPrefix("a real upgrade would keep the plaintext original") }, "\(expected)")
        let opened = try Fixture.open(file.folder, Self.shadowing())
        #expect(opened.report.warnings.besidesLeases == expected.map { "the shadow proof found: \($0)" })
        #expect(opened.report.shadow?.warnings == expected.count)
        #expect(LaunchReport(opened.report).warnings == expected.count)
    }

    @Test("A failed shadow proof is reported, and the database can still be opened")
    func shadowFailure() throws {
        let file = try Fixture.file(version: 23)
        let opened = try Fixture.open(file.folder, Self.shadowing()) {
            throw StoreError(.keyUnavailable, "the key store is locked")
        }
        #expect(opened.report.outcome == .openedPlaintext)
        #expect(LaunchReport(opened.report).outcome == .shadowFailed)
        #expect(opened.report.warnings.contains { $0.hasPrefix("the shadow proof failed: ") })
        #expect(LaunchReport(opened.report).errorCode == "keyUnavailable")
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        #expect(try file.folder.names.allSatisfy { !$0.contains("-upgrade") && !$0.hasSuffix("-attempt") })
    }

    @Test("A shadow proof that is killed again and again is not repeated forever")
    func shadowAttempts() throws {
        let file = try Fixture.file(version: 23)
        var killed = try KilledRun(file.folder, .shadow, attempts: 2)
        let copy = try killed.leaveCopy()
        let opened = try Fixture.open(file.folder, Self.shadowing(maximumAttempts: 2))
        #expect(LaunchReport(opened.report).errorCode == "repeatedFailure")
        #expect(try file.folder.names.contains("app.db-attempt"))
        #expect(try !file.folder.names.contains(copy))
    }

    @Test("Shadow proofs that were killed too often do not prevent the upgrade")
    func shadowsAreCountedSeparately() throws {
        let file = try Fixture.file(version: 23)
        let attempt = file.folder.url.appending(path: "app.db-attempt")
        for _ in 0..<2 {
            let record = SharedValue<Data?>(nil)
            var options = ConversionOptions()
            options.progress = {
                guard $0.stage == .building else { return }
                record.change { $0 = try? Data(contentsOf: attempt) }
            }
            let opened = try StoreOpening(
                configuration: Self.shadowing(maximumAttempts: 2), directory: file.folder.path(""),
                provider: TestKeys.provider(), options: options
            ).run()
            #expect(LaunchReport(opened.report).outcome == .shadow)
            // If the launch had been killed during the proof, the record would have remained.
            try #require(record.value).write(to: attempt)
        }
        let opened = try Fixture.open(file.folder, Self.shadowing(maximumAttempts: 2))
        #expect(LaunchReport(opened.report).errorCode == "repeatedFailure")
        let enabled = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 2))
        #expect(try Fixture.open(file.folder, enabled).report.outcome == .encrypted)
    }

    @Test("When the flag is off again, a launch removes an upgrade's leftovers and restores the journal mode")
    func abortSwitch() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        var killed = try KilledRun(file.folder, wasWriteAheadLog: true)
        try killed.leaveCopy()
        let opened = try Fixture.open(file.folder, Fixture.configuration(.init(isEnabled: false, sinceVersion: 24)))
        #expect(opened.report.warnings.besidesLeases == [])
        #expect(try file.folder.names.filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } == ["app.db"])
        #expect(try file.read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
    }

    @Test("With the flag off, a launch that creates a database removes the leftovers of a launch with the flag on")
    func abortSwitchOfFirstInstall() throws {
        let folder = try TemporaryFolder()
        var killed = try KilledRun(folder, wasWriteAheadLog: true)
        try killed.leaveCopy()
        let opened = try Fixture.open(folder, Fixture.configuration(.init(isEnabled: false, sinceVersion: 24)))
        #expect(opened.report.outcome == .created)
        #expect(opened.report.warnings.besidesLeases == [])
        #expect(try folder.names == ["app.db"])
    }

    @Test("A configuration file can request the shadow proof")
    func configured() throws {
        let json = #"{"dbName": "a.db", "dbVersion": 1, "encryption": {"enabled": false, "shadow": true}}"#
        #expect(try Configuration(data: Data(json.utf8), place: "app").encryption.shadow)
    }
}
