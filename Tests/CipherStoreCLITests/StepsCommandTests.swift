internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Databases of apps that updated in steps, with the command-line tool.
@Suite struct StepsCommandTests {
    private func store(_ example: String, in fixture: ToolFixture) -> [String] {
        let path = Repository.examples.appending(path: example).path(percentEncoded: false)
        return ["--config", path, "--directory", fixture.folder.path("")]
    }

    private func write(_ name: String, in fixture: ToolFixture, _ body: (Connection) throws -> Void) throws {
        try LegacyFile.write(fixture.folder.path(name), body)
    }

    @Test("plan shows the numbered steps that migrate runs, and the rows are kept")
    func numberedSteps() throws {
        let fixture = try ToolFixture()
        try write("user.db", in: fixture) { (connection) throws in
            try LegacyStepsApp.numbered.write(version: 2, to: connection)
            try connection.execute("INSERT INTO user_info (name, age) VALUES ('Ana', 41)")
        }
        let store = store("NumberedSteps/NumberedSteps.plist", in: fixture)
        let before = try fixture.snapshot()
        let plan = try fixture.run(["plan"] + store)
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(plan.output.contains("-- schema version: 2 -> 4"))
        #expect(plan.output.contains("-- sql sql_update_3.plist[0]: the step leads to version 3"))
        #expect(plan.output.contains("ALTER TABLE user_info ADD COLUMN sex TEXT;"))
        let machine = try fixture.run(["plan", "--json"] + store).object()
        #expect((machine["schema"] as? [String: Any])?["to"] as? String == "4")
        #expect(try fixture.snapshot() == before)

        let key = ["--key-file", fixture.key]
        let migrated = try fixture.run(["migrate"] + store + key)
        #expect(migrated.status == 0, "\(migrated.errors)")
        #expect(migrated.output.contains("version 2 -> 4"))
        let rows = try fixture.run(
            ["query", fixture.folder.path("user.db"), "SELECT name, age, sex FROM user_info", "--csv"] + key)
        #expect(rows.output == "name,age,sex\r\nAna,41,\r\n")
        #expect(try fixture.run(["migrate"] + store + key).output.contains("nothing to do"))
    }

    @Test("Steps by app version are planned and run, and so are the steps of every launch")
    func appVersions() throws {
        let fixture = try ToolFixture()
        try write("account.db", in: fixture) { (connection) throws in
            try LegacyStepsApp.appVersions.write(appVersion: "1.5.0", updates: ["1.2.0"], to: connection)
            try connection.execute("INSERT INTO contact (name, phone) VALUES ('Ana', '7')")
        }
        let store = store("AppVersions/AppVersions.json", in: fixture)
        let key = ["--key-file", fixture.key]
        let plan = try fixture.run(["plan"] + store)
        #expect(plan.output.contains("-- schema version: 1.5.0 -> 1.10.0"))
        #expect(plan.output.contains("-- at every launch:"))
        let migrated = try fixture.run(["migrate", "--json"] + store + key)
        #expect(migrated.status == 0, "\(migrated.errors)")
        let migration = try #require(try migrated.object()["migration"] as? [String: Any])
        #expect(migration["to"] as? String == "1.10.0")
        let rows = try fixture.run(
            ["query", fixture.folder.path("account.db"), "SELECT name, phone FROM contact", "--csv"] + key)
        #expect(rows.output == "name,phone\r\nAna,7\r\n")
        let again = try fixture.run(["plan"] + store + key)
        #expect(again.output.contains("-- nothing to do"))
    }

    @Test(
        "A step wrong for every database is a configuration error, and one that this data rejects is a data error",
        arguments: [
            (nil, 78, "configuration"), ("CREATE TABEL u (x)", 78, "configuration"), ("COMMIT", 78, "configuration"),
            ("CREATE UNIQUE INDEX i ON t (x)", 65, "migration"), ("ALTER TABLE t ADD COLUMN y TEXT", 0, nil),
        ] as [(String?, Int32, String?)])
    func stepFaults(step: String?, status: Int32, code: String?) throws {
        let fixture = try ToolFixture()
        try FileManager.default.createDirectory(
            atPath: fixture.folder.path("steps"), withIntermediateDirectories: false)
        try fixture.folder.write(#"["CREATE TABLE t (x)"]"#, to: "steps/sql_default.plist")
        if let step { try fixture.folder.write(#"["\#(step)"]"#, to: "steps/sql_update_2.plist") }
        try fixture.folder.write("[]", to: "steps/sql_update_3.plist")
        try fixture.folder.write(
            #"{"dbName": "app.db", "dbVersion": 3, "updates": {"directory": "steps"}}"#, to: "app.json")
        try write("app.db", in: fixture) { (connection) throws in
            try connection.executeScript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (1); PRAGMA user_version = 1")
        }
        let store = ["--config", fixture.folder.path("app.json"), "--directory", fixture.folder.path("")]
        for command in ["plan", "migrate"] {
            let run = try fixture.run([command, "--json", "--key-file", fixture.key] + store)
            #expect(run.status == status, "\(command): \(run.errors)")
            if let code { #expect(try run.failureCode() == code) }
        }
    }

    @Test("A database of unknown version is refused, and nothing is changed")
    func unknownVersion() throws {
        let fixture = try ToolFixture()
        try write("account.db", in: fixture) { try $0.execute("CREATE TABLE contact (id INTEGER PRIMARY KEY)") }
        let before = try fixture.snapshot()
        let arguments = store("AppVersions/AppVersions.json", in: fixture) + ["--key-file", fixture.key, "--json"]
        for command in ["plan", "migrate"] {
            let run = try fixture.run([command] + arguments)
            #expect(run.status != 0)
            #expect(try run.failureCode() == "recordedVersion")
        }
        #expect(try fixture.snapshot() == before)
    }
}
