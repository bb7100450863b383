internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The states in which a crash of an app with a declared schema leaves its files.
struct DeclaredHalfDoneTests {
    private static func configuration(
        _ recorded: RecordedVersion = .propertyList(file: "SpeSqlSetting.plist", key: "dbVersion"),
        unexpected: Configuration.UnexpectedPlaintext = .refuse
    ) -> Configuration {
        Configuration(
            databaseName: "local.db", version: 26,
            encryption: .init(sinceVersion: 24, unexpectedPlaintext: unexpected), recordedVersion: recorded,
            schema: .tables([
                DeclaredTable(
                    name: "chat",
                    columns: [
                        .init(name: "id", definition: "INTEGER PRIMARY KEY AUTOINCREMENT"),
                        .init(name: "uid", definition: "TEXT"), .init(name: "body", definition: "TEXT"),
                    ])
            ]))
    }

    private func folder(recording version: Int) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try folder.write(
            "<plist version=\"1.0\"><dict><key>dbVersion</key><integer>\(version)</integer></dict></plist>",
            to: "SpeSqlSetting.plist")
        return folder
    }

    private func open(_ folder: TemporaryFolder, _ configuration: Configuration = configuration()) throws -> OpenReport
    {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
    }

    private func make(_ folder: TemporaryFolder, key: CipherKey? = nil, _ script: String) throws {
        try LegacyFile.write(folder.path("local.db"), key: key, script: script)
    }

    enum Remains: CaseIterable { case nothing, noBytes, emptyEncrypted }

    @Test(
        "A half-done declared upgrade that left an empty database or none is reported, and is not a fresh install",
        arguments: Remains.allCases
    )
    func reportsLoss(remains: Remains) throws {
        let folder = try folder(recording: 23)
        switch remains {
        case .nothing: break
        case .noBytes: try folder.write("", to: "local.db")
        case .emptyEncrypted: try make(folder, key: TestKeys.raw(), "CREATE TABLE t(x); DROP TABLE t")
        }
        let plan = try StoreOpening(
            configuration: Self.configuration(), directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).plan()
        #expect(plan.schema.findings.map(\.severity) == [.warning])
        let report = try open(folder)
        #expect(report.migration.event == .adopted)
        #expect(report.migration.from == 23)
        #expect(
            report.warnings.besidesLeases == [
                "version 23 is recorded, but the database has no tables, so there was no data to preserve"
            ])
        #expect(try open(folder).warnings.besidesLeases.isEmpty)
    }

    @Test("A half-done declared upgrade that left nothing at all is a fresh install")
    func recognizesFreshInstall() throws {
        let report = try open(try TemporaryFolder())
        #expect(report.migration.event == .created)
        #expect(report.warnings.besidesLeases.isEmpty)
    }

    @Test("A half-done declared upgrade whose version the app's closure knows is not a fresh install")
    func asksClosure() throws {
        let report = try open(try TemporaryFolder(), Self.configuration(.custom { _ in 24 }))
        #expect(report.migration.event == .adopted)
        #expect(report.warnings.besidesLeases.count == 1)
    }

    @Test(
        "A half-done declared upgrade whose property list is newer than the database is repaired by its actual schema",
        arguments: [24, 25, 26])
    func repairsOlderDatabase(version: Int) throws {
        let folder = try folder(recording: version)
        try make(
            folder, key: TestKeys.raw(),
            "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER); INSERT INTO chat VALUES (5, 7)")
        let report = try open(folder)
        #expect(report.migration.applied.map(\.title) == ["rebuildTable chat", "stamp"])
        let rows = try LegacyFile(copying: folder.path("local.db")).read(key: TestKeys.raw()) {
            try $0.values(String.self, "SELECT id || uid || coalesce(body, 'none') FROM chat")
        }
        #expect(rows == ["57none"])
    }

    @Test("A half-done declared upgrade whose property list is newer than the plaintext file is refused until accepted")
    func refusesNewerList() throws {
        let folder = try folder(recording: 25)
        try make(
            folder,
            "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT); INSERT INTO chat VALUES (5, 'a')")
        let before = try Data(contentsOf: folder.url.appending(path: "local.db"))
        let error = try storeError { try open(folder) }
        #expect(error?.code == .unexpectedPlaintext)
        #expect(try Data(contentsOf: folder.url.appending(path: "local.db")) == before)
        let report = try open(folder, Self.configuration(unexpected: .encrypt))
        #expect(report.outcome == .encrypted)
        #expect(report.migration.applied.map(\.title) == ["addColumn chat.body", "stamp"])
    }

    @Test(
        "A half-done declared upgrade whose property list is newer than the app is a downgrade",
        arguments: [true, false])
    func refusesDowngrade(exists: Bool) throws {
        let folder = try folder(recording: 27)
        if exists { try make(folder, "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT)") }
        let names = try folder.names
        #expect(try storeError { try open(folder) }?.code == .downgrade)
        #expect(try folder.names == names)
    }
}
