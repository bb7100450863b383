internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct NumberedStepsTests {
    private static let example = "NumberedSteps/NumberedSteps.plist"
    private static let people = "INSERT INTO user_info (id, name) VALUES (3, 'Ana'), (9, 'Bo')"

    private func fixture(version: Int, leavingOut: Set<String> = []) throws -> StepsFixture {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { (connection) throws in
            try LegacyStepsApp.numbered.write(version: version, to: connection, leavingOut: leavingOut)
            try connection.execute(SQL(text: Self.people))
        }
        return fixture
    }

    private func names(_ connection: Connection) throws -> [String] {
        try connection.values(String.self, "SELECT id || ' ' || name FROM user_info ORDER BY id")
    }

    // MARK: All versions

    @Test(
        "An app with numbered steps is encrypted and migrated from every older version, and keeps its rows",
        arguments: [1, 2, 3])
    func migrates(version: Int) throws {
        let fixture = try fixture(version: version)
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(report.launch == .upgrade(from: SchemaVersion(version), to: 4))
        #expect(report.migration.applied.contains { $0.object == "sql_update_4.plist[0]" })
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            #expect(try LegacyStepsApp.schema(connection) == wanted)
            #expect(try names(connection) == ["3 Ana", "9 Bo"])
            #expect(try connection.value(Int.self, "SELECT count(*) FROM app_data") == 2)
            #expect(try connection.value(Int.self, "PRAGMA user_version") == 4)
        }
        let again = try fixture.open()
        #expect(again.outcome == .opened)
        #expect(again.launch == .unchanged)
        #expect(again.migration.applied.isEmpty)
    }

    @Test("An app with numbered steps uses its record as the number of the next update")
    func adoptsRecord() throws {
        let fixture = try fixture(version: 2)
        let plan = try fixture.plan()
        #expect(plan.from == 2)
        #expect(
            plan.operations.map(\.title) == [
                "sql sql_update_3.plist[0]", "sql sql_update_3.plist[1]", "sql sql_update_3.plist[2]",
                "sql sql_update_4.plist[0]", "sql db_version.db_version_num", "stamp",
            ])
    }

    @Test("An app with numbered steps runs the baseline and then every update on a new database")
    func firstInstall() throws {
        let fixture = try StepsFixture(example: Self.example)
        let plan = try fixture.plan()
        #expect(plan.operations.first?.object == "sql_default.plist[0]")
        #expect(plan.operations.count == 7)
        #expect(try fixture.open().launch == .firstInstall)
    }

    @Test(
        "An app with numbered steps can have them in Swift, where each runs once and in order",
        arguments: [nil, 1, 2, 3])
    func swiftSteps(version: Int?) throws {
        let steps = MigrationSteps(
            baseline: .sql(["CREATE TABLE log (line TEXT)"]),
            updates: [
                .init(3, .sql(["INSERT INTO log VALUES ('three')"])),
                .init(2, name: "second", .swift { try $0.execute("INSERT INTO log VALUES ('two')") }),
            ],
            everyLaunch: ["INSERT INTO log VALUES ('launch')"])
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), version == nil ? "" : "CREATE TABLE log (line TEXT)")
        let configuration = Configuration(databaseName: "app.db", version: 3, schema: .steps(steps))
        for _ in 1...2 { try fixture.launch(configuration, recorded: version.map { SchemaVersion($0) }) }
        let lines = try fixture.with { try $0.values(String.self, "SELECT line FROM log ORDER BY rowid") }
        #expect(lines == Array(["two", "three"].dropFirst((version ?? 1) - 1)) + ["launch", "launch"])
    }

    // MARK: Faults and half-done states

    @Test(
        "An app with numbered steps repairs what failed earlier, although the version moved on",
        arguments: [
            ["sql_update_2[0]"], ["sql_update_3[0]"], ["sql_update_3[1]", "sql_update_3[2]"],
            ["sql_update_2[0]", "sql_update_3[0]", "sql_update_3[1]", "sql_update_3[2]"],
        ])
    func repairs(failed: [String]) throws {
        let fixture = try fixture(version: 3, leavingOut: Set(failed))
        let report = try fixture.open()
        #expect(report.migration.from == 3)
        #expect(report.migration.notes.contains { $0.contains("the schema of its recorded version") })
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            // Columns that are added afterwards come after those that did not fail.
            #expect(
                try LegacyStepsApp.schema(connection).map(Self.withoutPlace).sorted()
                    == wanted.map(Self.withoutPlace).sorted())
            #expect(try names(connection) == ["3 Ana", "9 Bo"])
            #expect(try connection.value(Int.self, "SELECT count(*) FROM app_data") == 2)
        }
    }

    /// Returns a line of the schema without the column's number.
    private static func withoutPlace(_ line: String) -> String {
        line.replacing(/^(\w+): integer\(\d+\)/) { "\($0.1):" }
    }

    @Test(
        "An app with numbered steps completes a step that was begun",
        arguments: [["sql_update_3[1]", "sql_update_3[2]"], ["sql_update_3[0]"]])
    func finishes(notRun: [String]) throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { (connection) throws in
            try LegacyStepsApp.numbered.write(version: 2, to: connection)
            try LegacyStepsApp.numbered.run(
                ["sql_update_3"], on: connection, leavingOut: Set(notRun + ["sql_update_3[2]"]))
            try connection.execute(SQL(text: Self.people))
        }
        let report = try fixture.open()
        #expect(report.migration.from == 2)
        let done = notRun.contains("sql_update_3[0]") ? "sql_update_3.plist[1]" : "sql_update_3.plist[0]"
        #expect(report.migration.notes.contains { $0.hasPrefix("\(done) is skipped") })
        let wanted = try fixture.freshSchema()
        try fixture.read { (connection) throws in
            #expect(try LegacyStepsApp.schema(connection) == wanted)
            #expect(try connection.value(Int.self, "SELECT count(*) FROM app_data") == 2)
        }
    }

    /// A database at version 1 in which step 2 has begun.
    private func begun(_ step: [String], _ script: String) throws -> StepsFixture {
        let fixture = try StepsFixture(
            [
                "sql_default.plist": #"["CREATE TABLE chat (id INTEGER PRIMARY KEY, sentAt INTEGER)"]"#,
                "sql_update_2.plist": String(decoding: try JSONEncoder().encode(step), as: UTF8.self),
            ], version: "2")
        try fixture.write {
            try $0.executeScript(
                text:
                    "CREATE TABLE chat (id INTEGER PRIMARY KEY, sentAt INTEGER); INSERT INTO chat VALUES (1, 1700), (2, NULL);"
                    + script + "; PRAGMA user_version = 1")
        }
        return fixture
    }

    @Test(
        "An app with numbered steps is refused if it is unknown whether a statement that changes rows ran",
        arguments: [
            "UPDATE chat SET sentAt = sentAt * 1000", "update chat set sentAt = 1 where id = 1",
            "DELETE FROM chat WHERE id = (SELECT max(id) FROM chat)", "REPLACE INTO chat VALUES (1, 5, NULL)",
            "INSERT OR REPLACE INTO chat (sentAt) VALUES (7)", "INSERT INTO chat (sentAt) SELECT sentAt FROM chat",
            "WITH x (i) AS (SELECT 'INSERT OR IGNORE') UPDATE chat SET edited = 1",
        ], [[], ["CREATE INDEX ix ON chat (sentAt)"]])
    func refusesRowStatements(statement: String, rest: [String]) throws {
        let fixture = try begun(
            ["ALTER TABLE chat ADD COLUMN edited INTEGER", statement] + rest,
            "ALTER TABLE chat ADD COLUMN edited INTEGER")
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("it is unknown whether sql_update_2.plist[1] has run"), "\(error.detail)")
        #expect(try storeError { try fixture.plan() }?.detail == error.detail)
    }

    @Test("An app with numbered steps keeps rows that a half-done step changed before a statement known to have run")
    func leavesOutRowStatements() throws {
        let fixture = try begun(
            [
                "ALTER TABLE chat ADD COLUMN edited INTEGER", "UPDATE chat SET sentAt = sentAt * 1000",
                "CREATE INDEX ix ON chat (sentAt)", "CREATE TABLE later (x)", "INSERT INTO later VALUES (1)",
                "INSERT /* again */ OR IGNORE INTO chat (id) VALUES (1), (3)",
            ],
            """
            ALTER TABLE chat ADD COLUMN edited INTEGER; UPDATE chat SET sentAt = sentAt * 1000;
            CREATE INDEX ix ON chat (sentAt)
            """)
        let report = try fixture.open()
        let note =
            "sql_update_2.plist[1] is skipped: the statement has already run or failed, because "
            + "sql_update_2.plist[2]"
        #expect(report.migration.notes.contains { $0.hasPrefix(note) })
        try fixture.read { (connection) throws in
            #expect(
                try connection.values(String.self, "SELECT id || ' ' || coalesce(sentAt, '-') FROM chat ORDER BY id")
                    == ["1 1700000", "2 -", "3 -"])
            #expect(try connection.value(Int.self, "SELECT count(*) FROM later") == 1)
        }
    }

    @Test("An app with numbered steps runs a statement that failed before because its table or column was missing")
    func runsWhatFailed() throws {
        let fixture = try begun(
            [
                "ALTER TABLE chat ADD COLUMN edited INTEGER", "UPDATE chat SET edited = coalesce(edited, 0) + 1",
                "CREATE INDEX ix ON chat (sentAt)",
            ], "CREATE INDEX ix ON chat (sentAt)")
        _ = try fixture.open()
        #expect(try fixture.read { try $0.values(Int.self, "SELECT edited FROM chat") } == [1, 1])
    }

    @Test("An app with numbered steps starts a step from its first statement if nothing shows that it was begun")
    func notBegun() throws {
        let fixture = try begun(["UPDATE chat SET sentAt = sentAt * 1000", "CREATE INDEX ix ON chat (sentAt)"], "")
        _ = try fixture.open()
        #expect(try fixture.read { try $0.value(Int.self, "SELECT sentAt FROM chat") } == 1_700_000)
    }

    @Test("An app with numbered steps runs nothing twice if a step ran and only its version was not stored")
    func storesVersion() throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { (connection) throws in
            try LegacyStepsApp.numbered.write(version: 2, to: connection)
            try LegacyStepsApp.numbered.run(["sql_update_3"], on: connection)
            try connection.execute("UPDATE app_data SET value = 'dark' WHERE key = 'theme'")
        }
        let report = try fixture.open()
        #expect(
            report.migration.notes.contains(
                "sql_update_3.plist[2] is skipped: the rows that the statement inserts already exist"))
        let rows = try fixture.read { try $0.values(String.self, "SELECT key || value FROM app_data ORDER BY key") }
        #expect(rows == ["languageen", "themedark"])
    }

    @Test(
        "An app with numbered steps is refused if only some rows exist, or rows with keys from SQLite")
    func refusesOtherRows() throws {
        for (insert, rows) in [
            ("INSERT INTO s VALUES (1, 'a'), (2, 'b')", "INSERT INTO s VALUES (1, 'a')"),
            ("INSERT INTO s (name) VALUES ('a')", "INSERT INTO s VALUES (1, 'other')"),
            ("INSERT INTO s SELECT 1, 'a'", "INSERT INTO s VALUES (1, 'a')"),
            ("INSERT INTO s VALUES (abs(-1), NULL)", "INSERT INTO s VALUES (7, NULL)"),
            ("UPDATE s SET name = 'c'", "INSERT INTO s VALUES (1, 'c')"),
        ] {
            let table = "CREATE TABLE s (id INTEGER PRIMARY KEY, name TEXT)"
            let error = try begun([table, insert], "\(table); \(rows)").refusal()
            #expect(error.detail.contains("it is unknown whether sql_update_2.plist[1] has run"), "\(insert)")
        }
    }

    @Test("An app with numbered steps accepts rows of a step's own table as proof that earlier statements ran")
    func provesByRows() throws {
        let table = "CREATE TABLE s (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"
        let insert = "INSERT INTO s (name) VALUES ('a'), ('b')"
        let fixture = try begun(
            [table, "UPDATE chat SET sentAt = sentAt * 1000", insert],
            "\(table); UPDATE chat SET sentAt = sentAt * 1000; INSERT INTO s VALUES (5, 'a'), (8, 'b')")
        _ = try fixture.open()
        #expect(try fixture.read { try $0.value(Int.self, "SELECT max(sentAt) FROM chat") } == 1_700_000)
        #expect(try fixture.read { try $0.values(Int.self, "SELECT id FROM s") } == [5, 8])
    }

    @Test("An app with numbered steps is refused if a column of a half-done step exists and differs")
    func refusesOtherColumn() throws {
        let fixture = try fixture(version: 2)
        try fixture.write { try $0.execute("ALTER TABLE user_info ADD COLUMN sex BLOB NOT NULL DEFAULT x''") }
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("sql_update_3.plist[0]"))
        #expect(error.detail.contains("user_info.sex"))
    }

    @Test("An app with numbered steps is refused if a column of the baseline is missing")
    func refusesMissingColumn() throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write {
            try $0.executeScript(
                """
                CREATE TABLE db_version (db_version_num INTEGER); INSERT INTO db_version VALUES (2);
                CREATE TABLE user_info (id INTEGER PRIMARY KEY AUTOINCREMENT);
                """)
        }
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("user_info.name"))
    }

    @Test("An app with numbered steps keeps a table that a step should have dropped, and reports it")
    func keepsLeftover() throws {
        let files = [
            "sql_default.plist": #"["CREATE TABLE t (x)"]"#,
            "sql_update_2.plist": #"["DROP TABLE t", "CREATE TABLE u (x)"]"#, "sql_update_3.plist": "[]",
        ]
        let fixture = try StepsFixture(files)
        try fixture.write {
            try $0.executeScript(
                "CREATE TABLE t (x); INSERT INTO t VALUES (5); CREATE TABLE u (x); PRAGMA user_version = 2")
        }
        let report = try fixture.open()
        #expect(
            report.warnings.besidesLeases
                == ["the table t, which a step should have removed, still contains 1 row and is kept"])
        #expect(try fixture.read { try $0.value(Int.self, "SELECT x FROM t") } == 5)
    }

    @Test("An app with numbered steps creates a new schema in a database with only an empty record")
    func emptyRecord() throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { try $0.execute("CREATE TABLE db_version (db_version_num INTEGER)") }
        #expect(try fixture.open().launch == .firstInstall)
        let wanted = try fixture.freshSchema()
        #expect(try fixture.read(LegacyStepsApp.schema) == wanted)
    }

    @Test("An app with numbered steps reports missing tables if a version is recorded and none exists")
    func vanishedTables() throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write {
            try $0.executeScript(
                "CREATE TABLE db_version (db_version_num INTEGER); INSERT INTO db_version VALUES (4)")
        }
        let report = try fixture.open()
        #expect(report.launch == .upgrade(from: 3, to: 4))
        #expect(report.warnings.contains { $0.hasPrefix("version 3 is recorded, but the database has no tables") })
    }

    // MARK: Records

    @Test(
        "An app with numbered steps is refused if its record is invalid, or missing beside its tables",
        arguments: ["'soon'", "-3", "NULL", "0", nil])
    func refusesRecord(value: String?) throws {
        let fixture = try StepsFixture(example: Self.example)
        try fixture.write { (connection) throws in
            try LegacyStepsApp.numbered.run(["sql_default"], on: connection)
            guard let value else { return }
            try connection.executeScript(
                text: "CREATE TABLE db_version (db_version_num INTEGER); INSERT INTO db_version VALUES (\(value))")
        }
        let error = try fixture.refusal()
        #expect(error.code == .recordedVersion)
        #expect(try storeError { try fixture.plan() }?.code == .recordedVersion)
    }

    @Test("An app with numbered steps is refused if its database is newer than the app")
    func refusesDowngrade() throws {
        let fixture = try fixture(version: 4)
        try fixture.write { try $0.execute("UPDATE db_version SET db_version_num = 9") }
        #expect(try fixture.refusal().code == .downgrade)
    }

    @Test("An app with numbered steps but no record continues from the assumed version")
    func assumes() throws {
        var fixture = try fixture(version: 2)
        try fixture.write { try $0.execute("DROP TABLE db_version") }
        #expect(try fixture.refusal().advice.contains("recordedVersion.assume"))
        fixture.configuration.assumedVersion = 2
        #expect(try fixture.open().launch == .upgrade(from: 2, to: 4))
        let wanted = try fixture.freshSchema()
        #expect(try fixture.read(LegacyStepsApp.schema) == wanted)
    }
}
