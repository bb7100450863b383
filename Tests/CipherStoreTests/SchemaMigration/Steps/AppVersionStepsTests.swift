internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct AppVersionStepsTests {
    private static let example = "AppVersions/AppVersions.json"
    private static let people = "INSERT INTO contact (id, name) VALUES (4, 'Ana'), (8, 'Bo')"
    private static let all = ["1.2.0", "1.9.2", "1.10.0"]

    private func fixture(_ version: String, updates: [String], leavingOut: Set<String> = []) throws -> StepsFixture {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { (connection) throws in
            try LegacyStepsApp.appVersions.write(appVersion: version, updates: updates, to: connection)
            try connection.executeScript(
                text: Self.people + "; INSERT INTO outbox (body, sent) VALUES ('gone', 1), ('waits', 0)")
        }
        return fixture
    }

    // MARK: All versions

    @Test(
        "An app with steps by app version is encrypted and migrated from every older version, with or without a step",
        arguments: [("1.0.0", 0), ("1.0", 0), ("1.2.0", 1), ("1.5.7", 1), ("1.9.2", 2), ("1.9.10", 2)])
    func migrates(version: String, count: Int) throws {
        let fixture = try fixture(version, updates: Array(Self.all.prefix(count)))
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        let from = try #require(SchemaVersion(version))
        let to = try #require(SchemaVersion("1.10.0"))
        #expect(report.launch == .upgrade(from: from, to: to))
        #expect(report.isUpdate)
        let steps = Set(report.migration.applied.compactMap { $0.object?.split(separator: "[").first.map(String.init) })
        #expect(steps.intersection(Self.all.map { "sql_update_\($0).plist" }).count == 3 - count)
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            #expect(try LegacyStepsApp.schema(connection) == wanted)
            #expect(try connection.values(String.self, "SELECT id || name || phone FROM contact") == ["4Ana", "8Bo"])
            #expect(try connection.values(String.self, "SELECT body FROM outbox") == ["waits"])
            #expect(try VersionRecords(connection).version == to)
        }
        let again = try fixture.open()
        #expect(again.launch == .unchanged)
        #expect(!again.isUpdate)
    }

    @Test("An app with steps by app version runs the launch statements at every launch without a history entry")
    func everyLaunch() throws {
        let fixture = try fixture("1.9.2", updates: ["1.2.0", "1.9.2"])
        for _ in 1...3 {
            _ = try fixture.open()
            try fixture.read { (connection) throws in
                #expect(try connection.value(Int.self, "SELECT count(*) FROM outbox WHERE sent = 1") == 0)
                try connection.execute("INSERT INTO outbox (body, sent) VALUES ('again', 1)")
            }
        }
        let plan = try fixture.plan()
        #expect(plan.isEmpty)
        #expect(plan.everyLaunch.map(\.title) == ["sql sql_launch.plist[0]"])
        #expect(try fixture.read { try HistoryTable.latestEvents($0).map(\.event) } == ["adopted", "encrypted"])
    }

    @Test("An app with steps by app version needs no step for each version, even if its version is one number")
    func naturalGaps() throws {
        let files = [
            "sql_default.plist": #"["CREATE TABLE t (x)"]"#, "sql_update_4.plist": #"["ALTER TABLE t ADD COLUMN y"]"#,
        ]
        for version in [#""4.0.0""#, #""6.0""#, #""4.1.2""#] {
            #expect(try StepsFixture(files, version: version).open().launch == .firstInstall)
        }
        #expect(try storeError { try StepsFixture(files, version: "4") }?.code == .configuration)
    }

    // MARK: Half-done states

    @Test(
        "An app with steps by app version is refused if its database has tables and no version record",
        arguments: [true, false])
    func refusesUnknown(hasTable: Bool) throws {
        var fixture = try fixture("1.2.0", updates: ["1.2.0"])
        try fixture.write {
            try $0.execute(hasTable ? "DELETE FROM tb_clientstage WHERE id = '1'" : "DROP TABLE tb_clientstage")
        }
        let error = try fixture.refusal()
        #expect(error.code == .recordedVersion)
        #expect(error.detail.contains("but no recorded version"))
        #expect(error.advice.contains("recordedVersion.assume"))
        // The rows of another account do not count.
        fixture.configuration.assumedVersion = SchemaVersion("1.2.0")
        #expect(try fixture.open().migration.from == SchemaVersion("1.2"))
        let wanted = try fixture.freshSchema()
        #expect(try fixture.read(LegacyStepsApp.schema) == wanted)
    }

    @Test("An app with steps by app version uses the assumed version from the file, and only if necessary")
    func assumesFromFile() throws {
        let files = [
            "sql_default.plist": #"["CREATE TABLE t (x)"]"#, "sql_update_1.2.plist": #"["CREATE TABLE u (y)"]"#,
        ]
        let extra = #", "recordedVersion": {"assume": "1.0.0"}"#
        let fixture = try StepsFixture(files, version: #""1.2.0""#, extra: extra)
        #expect(fixture.configuration.assumedVersion == 1)
        try fixture.write { try $0.execute("CREATE TABLE t (x)") }
        #expect(try fixture.open().launch == .upgrade(from: 1, to: try #require(SchemaVersion("1.2"))))
        let fresh = try StepsFixture(files, version: #""1.2.0""#, extra: extra)
        #expect(try fresh.open().launch == .firstInstall)
    }

    @Test("An app with steps by app version continues an unfinished rebuild, and loses no row")
    func finishesRebuild() throws {
        let fixture = try fixture("1.9.2", updates: ["1.2.0", "1.9.2"])
        try fixture.write { (connection) throws in
            for sql in try LegacyStepsApp.appVersions.statements("sql_update_1.10.0").dropLast() {
                try connection.executeScript(text: sql)
            }
        }
        let plan = try fixture.plan()
        #expect(plan.operations.compactMap(\.object) == ["sql_update_1.10.0.plist[3]", "tb_clientstage.version"])
        #expect(plan.notes.count == 3)
        _ = try fixture.open()
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            #expect(try LegacyStepsApp.schema(connection) == wanted)
            #expect(try connection.values(String.self, "SELECT name FROM contact") == ["Ana", "Bo"])
        }
    }

    @Test(
        "An app with steps by app version adds a column that failed, even if a later step rebuilds its table",
        arguments: [1, 2])
    func repairsBeforeRebuild(count: Int) throws {
        let fixture = try fixture(Self.all[count - 1], updates: Array(Self.all.dropFirst().prefix(count - 1)))
        let plan = try fixture.plan()
        #expect(plan.operations.first?.title == "addColumn contact.phone")
        _ = try fixture.open()
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            #expect(try LegacyStepsApp.schema(connection) == wanted)
            #expect(try connection.values(String.self, "SELECT id || name || phone FROM contact") == ["4Ana", "8Bo"])
        }
    }

    /// A database of version 2 whose step 3 drops a table, changes rows and rebuilds a table.
    private func rebuilding(_ script: String) throws -> StepsFixture {
        let fixture = try StepsFixture([
            "sql_default.plist": #"["CREATE TABLE old (x)", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"]"#,
            "sql_update_2.plist": #"["ALTER TABLE t ADD COLUMN a TEXT"]"#,
            "sql_update_3.plist": """
            ["DROP TABLE old", "UPDATE t SET n = n * 10", "CREATE TABLE u (id INTEGER PRIMARY KEY, n TEXT, a TEXT)",
             "INSERT INTO u SELECT id, n, a FROM t", "DROP TABLE t", "ALTER TABLE u RENAME TO t"]
            """,
        ])
        try fixture.write {
            try $0.executeScript(text: script + "; INSERT INTO t (id, n) VALUES (1, 5); PRAGMA user_version = 2")
        }
        return fixture
    }

    @Test("An app with steps by app version keeps the proof of a half-done step if an earlier column is missing too")
    func repairsBegunRebuild() throws {
        let error = try rebuilding("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)").refusal()
        #expect(error.detail.contains("it is unknown whether sql_update_3.plist[1] has run"), "\(error.detail)")
        let fixture = try rebuilding("CREATE TABLE old (x); CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        #expect(try fixture.open().migration.applied.first?.title == "addColumn t.a")
        #expect(try fixture.read { try $0.value(String.self, "SELECT n FROM t") } == "50")
    }

    @Test("An app with steps by app version rebuilds a table with a differently defined column")
    func rebuildsOtherDefinition() throws {
        let fixture = try rebuilding(
            "CREATE TABLE old (x); CREATE TABLE t (id INTEGER PRIMARY KEY, n BIGINT, a VARCHAR)")
        let report = try fixture.open()
        #expect(report.warnings.besidesLeases.count == 2)
        #expect(try fixture.read { try $0.value(String.self, "SELECT n FROM t") } == "50")
    }

    @Test("An app with steps by app version copies rows if their new table is still empty")
    func copiesIntoEmpty() throws {
        let fixture = try fixture("1.9.2", updates: ["1.2.0", "1.9.2"])
        try fixture.write { (connection) throws in
            try connection.executeScript(text: LegacyStepsApp.appVersions.statements("sql_update_1.10.0")[0])
        }
        _ = try fixture.open()
        #expect(try fixture.read { try $0.values(String.self, "SELECT name FROM contact") } == ["Ana", "Bo"])
    }

    @Test("An app with steps by app version rebuilds a table under an unknown view if the step requests it")
    func rebuildsUnderView() throws {
        let rebuild = [
            "CREATE TABLE u (x TEXT)", "INSERT INTO u SELECT x FROM t", "DROP TABLE t", "ALTER TABLE u RENAME TO t",
        ]
        let legacy = "PRAGMA legacy_alter_table = "
        for steps in [rebuild, [legacy + "ON"] + rebuild + [legacy + "OFF"]] {
            let fixture = try StepsFixture(
                [
                    "sql_default.plist": #"["CREATE TABLE t (x)"]"#,
                    "sql_update_2.plist": String(decoding: try JSONEncoder().encode(steps), as: UTF8.self),
                ], version: "2")
            try fixture.write {
                try $0.executeScript(
                    """
                    CREATE TABLE t (x); CREATE VIEW v AS SELECT x FROM t; INSERT INTO t VALUES ('kept');
                    PRAGMA user_version = 1;
                    """)
            }
            if steps == rebuild, Engine.current.sqliteVersionNumber >= 3_026_000 {
                #expect(try fixture.refusal().detail.contains("sql_update_2.plist[3]"))
            } else {
                _ = try fixture.open()
                #expect(try fixture.read { try $0.values(String.self, "SELECT x FROM v") } == ["kept"])
            }
        }
    }

    @Test("An app with steps by app version is refused if it is unknown whether rows were copied")
    func refusesUnclearCopy() throws {
        let fixture = try fixture("1.9.2", updates: ["1.2.0", "1.9.2"])
        try fixture.write { (connection) throws in
            try connection.executeScript(text: LegacyStepsApp.appVersions.statements("sql_update_1.10.0")[0])
            try connection.execute("INSERT INTO contact_new (id, name) VALUES (4, 'Ana')")
        }
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("sql_update_1.10.0.plist[1]"))
    }

    @Test("An app with steps by app version is refused if a renamed table has its old name only")
    func refusesLeftover() throws {
        let files = [
            "sql_default.plist": #"["CREATE TABLE t (x)"]"#,
            "sql_update_2.plist": #"["ALTER TABLE t RENAME TO u"]"#, "sql_update_3.plist": "[]",
        ]
        let fixture = try StepsFixture(files)
        try fixture.write {
            try $0.executeScript("CREATE TABLE t (x); INSERT INTO t VALUES (1); PRAGMA user_version = 2")
        }
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("the table t"))
        #expect(error.detail.contains("table u"))
    }

    @Test(
        "An app with steps by app version whose file cannot be opened is not treated as a first install",
        arguments: ["not a database, not at all", "SQLite format 3\0"])
    func refusesDamage(start: String) throws {
        let fixture = try StepsFixture(example: Self.example)
        try (Data(start.utf8) + Data(repeating: 7, count: 8192)).write(to: URL(filePath: fixture.path))
        let error = try fixture.refusal()
        #expect([.keyDoesNotFit, .corrupt, .saltMissing].contains(error.code))
    }
}
