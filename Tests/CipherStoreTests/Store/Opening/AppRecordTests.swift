internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The app's own record of the version, after CipherStore has its own.
struct AppRecordTests {
    @Test(
        "The app's own version record is updated in the same transaction",
        arguments: [
            ("NumberedSteps/NumberedSteps.plist", 1, "SELECT db_version_num FROM db_version", ["5"]),
            ("NumberedSteps/NumberedSteps.plist", 3, "SELECT db_version_num FROM db_version", ["5"]),
            (
                "AppVersions/AppVersions.json", 1, "SELECT version FROM tb_clientstage ORDER BY tableno",
                ["1.10.0", "99"]
            ),
            ("Template/NoteStore.json", 2, "SELECT value FROM Records WHERE name = 'DBVersion'", ["3"]),
        ])
    func recordFollows(example: String, version: Int, sql: String, expected: [String]) throws {
        let fixture = try PriorFixture(example)
        try fixture.write { connection in
            switch example.prefix(1) {
            case "N": try LegacyStepsApp.numbered.write(version: version, to: connection)
            case "A": try LegacyStepsApp.appVersions.write(appVersion: "1.0.0", updates: [], to: connection)
            default: try TemplateApp.writeDatabase(connection, version: version)
            }
        }
        #expect(try fixture.positionsThatChange().changed.isEmpty)
        try fixture.open()
        #expect(try fixture.values(sql) == expected)
        #expect(try fixture.open().migration.applied.filter { $0.kind != .sql || $0.table != nil }.isEmpty)
        // An earlier release of CipherStore, or remaining code of the app, has written another number there.
        let stale = sql.replacing("SELECT", with: "UPDATE").split(separator: " ")
        let (column, table) = (String(stale[1]), String(stale[3]))
        let filter =
            example.hasPrefix("A") ? " WHERE tableno = '0'" : example.hasPrefix("T") ? " WHERE name = 'DBVersion'" : ""
        try fixture.read { try $0.executeScript(text: "UPDATE \(table) SET \(column) = '1'\(filter)") }
        let events = try fixture.values("SELECT id FROM cipherstore_history")
        try fixture.open()
        #expect(try fixture.values(sql) == expected)
        // Code that writes the record at every launch does not make the history grow.
        #expect(try fixture.values("SELECT id FROM cipherstore_history") == events)
    }

    @Test("A fresh install creates no version record of the app's own")
    func makesNoRecord() throws {
        let fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        try fixture.open()
        #expect(try fixture.values("SELECT name FROM sqlite_master WHERE name = 'db_version'") == [])
    }
}
