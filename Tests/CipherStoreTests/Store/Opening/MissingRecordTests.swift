internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct MissingRecordTests {
    /// A record that a configuration requires, and which parts of it exist.
    struct Missing: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let source: RecordedVersion
        var script = ""
        var propertyList: String?
    }

    private static let list = RecordedVersion.propertyList(file: "settings.plist", key: "dbVersion")
    private static let table = RecordedVersion.table(
        .init(table: "Records", column: "value", filter: ["name": "DBVersion"]))

    static let all = [
        Missing(testDescription: "no property list", source: list),
        Missing(
            testDescription: "no such key in it", source: list,
            propertyList: "<plist version=\"1.0\"><dict><key>other</key><integer>25</integer></dict></plist>"),
        Missing(testDescription: "no table", source: table),
        Missing(
            testDescription: "no such row in it", source: table,
            script: "CREATE TABLE Records(name TEXT, value TEXT); INSERT INTO Records VALUES ('other', '25')"),
    ]

    private func file(_ missing: Missing) throws -> LegacyFile {
        let file = try OpeningFixture.file(version: 0, extra: missing.script)
        if let text = missing.propertyList { try file.folder.write(text, to: "settings.plist") }
        return file
    }

    @Test(
        "A database with tables and no version record is refused with the missing record, and nothing is changed",
        arguments: all)
    func refusesUnknownVersion(missing: Missing) throws {
        let file = try file(missing)
        let before = try FolderDigest(file.folder.url, ignoring: ["-shm"])
        let error = #expect(throws: StoreError.self) {
            try OpeningFixture.open(file.folder, OpeningFixture.configuration(recordedVersion: missing.source))
        }
        #expect(error?.code == .recordedVersion)
        #expect(error?.detail.contains("is missing") == true)
        #expect(error?.advice.contains("recordedVersion.assume") == true)
        #expect(try FolderDigest(file.folder.url, ignoring: ["-shm"]) == before)
    }

    @Test(
        "A database with tables and no version record has the version that the configuration assumes",
        arguments: all)
    func assumesVersion(missing: Missing) throws {
        let file = try file(missing)
        var configuration = OpeningFixture.configuration(recordedVersion: missing.source)
        configuration.assumedVersion = 20
        let report = try OpeningFixture.open(file.folder, configuration).report
        #expect(report.outcome == .encrypted)
        #expect(report.migration.from == 20)
        #expect(try OpeningFixture.rows(file, key: TestKeys.raw()) == OpeningFixture.allRows)
    }

    @Test(
        "A database with no tables but those of the version record is a new one",
        arguments: all)
    func takesEmptyDatabaseForNew(missing: Missing) throws {
        let folder = try TemporaryFolder()
        try LegacyFile.write(folder.path("app.db"), script: "PRAGMA application_id = 7; " + missing.script)
        let report = try OpeningFixture.open(
            folder, OpeningFixture.configuration(recordedVersion: missing.source)
        ).report
        #expect(report.outcome == .encrypted)
        #expect(report.migration.from == 0)
    }
}
