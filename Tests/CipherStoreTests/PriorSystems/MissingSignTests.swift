internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Losses that an app must notice, and that nothing else would show.
struct MissingSignTests {
    @Test(
        "An encrypted database whose tables are all empty causes a warning, whatever version it records",
        arguments: [0, 25])
    func warnsOfEmptyTables(version: Int) throws {
        let folder = try TemporaryFolder()
        try LegacyFile.write(
            folder.path("local.db"), key: TestKeys.raw(),
            script: "CREATE TABLE chat(id INTEGER PRIMARY KEY, uid TEXT); PRAGMA user_version = \(version)")
        let configuration = Configuration(databaseName: "local.db", version: 26)
        let report = try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
        #expect(report.warnings.contains { $0.contains("every table was empty") })
    }

    @Test("A template row that one of the user's rows excludes causes a warning")
    func warnsOfLostSeeds() throws {
        let fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { connection in
            try TemplateApp.writeDatabase(connection, version: 2)
            // The user's row has another number for a unique name that the template also contains.
            try connection.executeScript(
                "CREATE TABLE unit (id INTEGER PRIMARY KEY, name TEXT UNIQUE, factor REAL, icon BLOB); INSERT INTO unit VALUES (40, 'lb', 1, NULL)"
            )
        }
        let plan = try fixture.plan().schema
        #expect(plan.findings.warnings.contains { $0.contains("1 template row") && $0.contains("unit") })
        let report = try fixture.open()
        #expect(report.warnings.contains { $0.contains("1 template row") && $0.contains("unit") })
        #expect(try fixture.values("SELECT id || name FROM unit ORDER BY id") == ["1kg", "7oz", "40lb"])
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
    }

    @Test("Template rows that the user already has cause no warning")
    func isSilentAboutOwnSeeds() throws {
        let fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write { try TemplateApp.writeDatabase($0, version: 2) }
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
    }

    @Test("Rows in a step's old table beside the empty new one cause a warning", arguments: [true, false])
    func warnsOfOldTable(holdsRows: Bool) throws {
        let fixture = try StepsFixture([
            "sql_default.plist": #"["CREATE TABLE user_info(id INTEGER PRIMARY KEY, name TEXT)"]"#,
            "sql_update_2.plist": """
            ["ALTER TABLE user_info RENAME TO user_old",
             "CREATE TABLE user_info(id INTEGER PRIMARY KEY, name TEXT, age INTEGER)",
             "INSERT INTO user_info(id, name) SELECT id, name FROM user_old", "DROP TABLE user_old"]
            """, "sql_update_3.plist": #"["CREATE TABLE later(a)"]"#,
        ])
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE db_version(db_version_num INTEGER); INSERT INTO db_version VALUES (3);
                    CREATE TABLE user_old(id INTEGER PRIMARY KEY, name TEXT);
                    CREATE TABLE user_info(id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
                    \(holdsRows ? "INSERT INTO user_old VALUES (4, 'Ana')" : "")
                    """)
        }
        let report = try fixture.open()
        #expect(report.warnings.contains { $0.contains("user_old") && $0.contains("1 row") } == holdsRows)
    }
}
