internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct LaunchHookTests {
    private struct Failure: Error {}

    private func configuration(
        version: SchemaVersion, failingAt place: String? = nil, isEncrypted: Bool = true
    ) -> Configuration {
        var configuration = Configuration.declaring(
            ["chat": ["uid": "TEXT"], "log": ["line": "TEXT"]], version: version)
        configuration.encryption = .init(isEnabled: isEncrypted, sinceVersion: 100)
        let note: @Sendable (Connection, String) throws -> Void = { connection, line in
            try connection.execute("INSERT INTO log VALUES (\(line))")
            if line == place { throw Failure() }
        }
        configuration.launch = LaunchHooks(
            firstInstall: { try note($0, "first") },
            upgrade: { try note($0, "from \($1?.description ?? "unknown") to \($2)") },
            unchanged: { try note($0, "unchanged") }, everyLaunch: { try note($0, "every") })
        return configuration
    }

    private func open(_ configuration: Configuration, in folder: TemporaryFolder) throws -> OpenReport {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
    }

    private func log(_ folder: TemporaryFolder, key: CipherKey?) throws -> [String] {
        try LegacyFile(copying: folder.path("app.db")).read(key: key) {
            try $0.values(String.self, "SELECT line FROM log ORDER BY rowid")
        }
    }

    @Test("Launch hooks run according to the kind of launch, and one of them every time", arguments: [true, false])
    func kinds(isEncrypted: Bool) throws {
        let folder = try TemporaryFolder()
        let kinds = try [2, 2, 3, 3].map { (version: SchemaVersion) in
            try open(configuration(version: version, isEncrypted: isEncrypted), in: folder).launch
        }
        #expect(kinds == [.firstInstall, .unchanged, .upgrade(from: 2, to: 3), .unchanged])
        #expect(
            try log(folder, key: isEncrypted ? TestKeys.raw() : nil)
                == ["first", "every", "unchanged", "every", "from 2 to 3", "every", "unchanged", "every"])
        let older = try storeError { try open(configuration(version: 2, isEncrypted: isEncrypted), in: folder) }
        #expect(older?.code == .downgrade)
    }

    @Test("Launch hooks of an upgrade run for a legacy file", arguments: [0, 1])
    func legacy(version: Int) throws {
        let file = try LegacyFile {
            try $0.executeScript(text: "CREATE TABLE chat (uid TEXT); PRAGMA user_version = \(version)")
        }
        let report = try open(configuration(version: 2), in: file.folder)
        #expect(report.outcome == .encrypted)
        #expect(report.launch == .upgrade(from: SchemaVersion(version), to: 2))
        #expect(try log(file.folder, key: TestKeys.raw()) == ["from \(version) to 2", "every"])
    }

    @Test("Launch hooks are part of the plan, but do not run with it")
    func planned() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE chat (uid TEXT)")
        let before = try fixture.bytes()
        let plan = try fixture.with(.readOnly) {
            try SchemaMigrator(configuration: configuration(version: 2)).plan($0, recorded: 1)
        }
        #expect(plan.operations.map(\.title) == ["createTable log", "swift at the upgrade", "stamp"])
        #expect(plan.everyLaunch.map(\.title) == ["swift at every launch"])
        #expect(try fixture.bytes() == before)
    }

    @Test("Launch hooks that throw roll back everything", arguments: ["from 1 to 2", "every"])
    func rollsBack(place: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), "CREATE TABLE chat (uid TEXT)")
        let before = try fixture.content()
        let error = try storeError { try fixture.launch(configuration(version: 2, failingAt: place), recorded: 1) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("threw an error of type Failure") == true)
        #expect(try fixture.content() == before)
    }

    @Test("Launch hooks of a first install that throw leave no file")
    func failedInstall() throws {
        let folder = try TemporaryFolder()
        let error = try storeError { try open(configuration(version: 2, failingAt: "first"), in: folder) }
        #expect(error?.code == .migration)
        #expect(try folder.names.isEmpty)
        #expect(try open(configuration(version: 2), in: folder).launch == .firstInstall)
    }
}
