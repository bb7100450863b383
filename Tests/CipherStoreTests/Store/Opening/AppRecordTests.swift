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

    private func fixture(_ json: String, _ script: String) throws -> PriorFixture {
        var fixture = try PriorFixture("NumberedSteps/NumberedSteps.plist")
        fixture.configuration = try Configuration(data: Data(json.utf8), place: "app.json")
        try fixture.write { try $0.executeScript(text: script) }
        return fixture
    }

    @Test(
        "In a version table with a row for each version, only the row with the highest version is updated",
        arguments: [
            "version INTEGER PRIMARY KEY, at TEXT", "version INTEGER, at TEXT", "version TEXT UNIQUE, at TEXT",
        ])
    func keepsOlderRows(columns: String) throws {
        let fixture = try fixture(
            """
            { "dbName": "app.db", "dbVersion": 12, "dbTables": [{ "note": [{ "body": "TEXT" }] }],
              "recordedVersion": { "source": "table", "table": "versions", "column": "version" } }
            """,
            """
            CREATE TABLE versions(\(columns)); CREATE TABLE note(body TEXT);
            INSERT INTO versions VALUES (10, 'c'), (1, 'a'), (9, 'b');
            """)
        try fixture.open()
        #expect(try fixture.values("SELECT version || at FROM versions ORDER BY at") == ["1a", "9b", "12c"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("A version that a step has added to the version table does not replace an older one")
    func keepsRowBesideAddedOne() throws {
        var fixture = try fixture(
            #"{ "dbName": "app.db", "dbVersion": 2 }"#,
            """
            CREATE TABLE versions(version INTEGER UNIQUE); CREATE TABLE note(body TEXT);
            INSERT INTO versions VALUES (1);
            """)
        fixture.configuration.recordedVersion = .table(.init(table: "versions", column: "version"))
        fixture.configuration.schema = .steps(
            MigrationSteps(
                baseline: .sql(["CREATE TABLE versions(version INTEGER UNIQUE)", "CREATE TABLE note(body TEXT)"]),
                updates: [
                    .init(2, name: "second", .sql(["CREATE TABLE tag(a)", "INSERT INTO versions VALUES (2)"]))
                ]))
        try fixture.open()
        #expect(try fixture.values("SELECT version FROM versions ORDER BY 1") == ["1", "2"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test(
        "A version is not added to a table of the app whose other columns require a value",
        arguments: [
            (
                """
                "dbTables": [{ "note": [{ "body": "TEXT" }] }],
                "recordedVersion": { "source": "table", "table": "versions", "column": "value",
                                     "where": { "name": "db" }, "assume": 1 }
                """,
                "CREATE TABLE versions(name TEXT, value TEXT, at TEXT NOT NULL); INSERT INTO versions VALUES ('x', '1', 'now')",
                "versions", ["x"]
            ),
            (
                #""tableVersions": { "note": { "version": 1, "columns": [{ "body": "TEXT" }] } }"#,
                "CREATE TABLE tableVersion(name TEXT, version DOUBLE, at TEXT NOT NULL)", "tableVersion", []
            ),
            (
                #""tableVersions": { "note": { "version": 1, "columns": [{ "body": "TEXT" }] } }"#,
                "CREATE TABLE tableVersion(id INTEGER PRIMARY KEY NOT NULL, name TEXT, version DOUBLE)",
                "tableVersion", ["note"]
            ),
        ])
    func requiresOtherValues(keys: String, script: String, table: String, expected: [String]) throws {
        let fixture = try fixture(
            #"{ "dbName": "app.db", "dbVersion": 4, \#(keys) }"#, "\(script); CREATE TABLE note(body TEXT);")
        try fixture.open()
        #expect(try fixture.values("SELECT name FROM \(table)") == expected)
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test(
        "Only one of several forms of the highest version is updated in a version table",
        arguments: ["version TEXT PRIMARY KEY, at TEXT", "version TEXT, at TEXT"])
    func updatesOneForm(columns: String) throws {
        let fixture = try fixture(
            """
            { "dbName": "app.db", "dbVersion": "2.1.0", "dbTables": [{ "note": [{ "body": "TEXT" }] }],
              "recordedVersion": { "source": "table", "table": "versions", "column": "version" } }
            """,
            """
            CREATE TABLE versions(\(columns)); CREATE TABLE note(body TEXT);
            INSERT INTO versions VALUES ('1.0', 'a'), ('2.0', 'b'), ('2.0.0', 'c');
            """)
        try fixture.open()
        #expect(try fixture.values("SELECT version FROM versions ORDER BY at") == ["1.0", "2.1.0", "2.0.0"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test(
        "A version that rows of another table reference stays, and the new version is added if nothing else is required",
        arguments: [
            ("name TEXT", "REFERENCES versions(version)", ["1", "2"]),
            ("name TEXT NOT NULL", "REFERENCES versions", ["1"]),
        ])
    func keepsReferencedVersion(column: String, reference: String, expected: [String]) throws {
        let fixture = try fixture(
            """
            { "dbName": "app.db", "dbVersion": 2, "dbTables": [{ "note": [{ "body": "TEXT" }] }],
              "recordedVersion": { "source": "table", "table": "versions", "column": "version" } }
            """,
            """
            CREATE TABLE versions(version INTEGER PRIMARY KEY, \(column)); CREATE TABLE note(body TEXT);
            INSERT INTO versions VALUES (1, 'a'); CREATE TABLE applied(version \(reference) ON UPDATE CASCADE);
            INSERT INTO applied VALUES (1);
            """)
        try fixture.open()
        #expect(try fixture.values("SELECT version FROM versions ORDER BY 1") == expected)
        #expect(try fixture.values("SELECT version FROM applied") == ["1"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    private static let refusals =
        [
            """
            CREATE TABLE known(n INTEGER PRIMARY KEY); INSERT INTO known VALUES (1);
            CREATE TABLE versions(version INTEGER REFERENCES known(n))
            """,
            "CREATE TABLE versions(version INTEGER CHECK (version < 2))",
            """
            CREATE TABLE versions(version INTEGER);
            CREATE TRIGGER kept BEFORE UPDATE ON versions BEGIN SELECT raise(ABORT, 'kept'); END
            """,
            """
            CREATE TABLE versions(version INTEGER);
            CREATE TRIGGER kept BEFORE UPDATE ON versions BEGIN SELECT raise(IGNORE); END
            """,
            """
            CREATE TABLE versions(version INTEGER); CREATE TABLE log(version);
            CREATE TRIGGER logged AFTER UPDATE ON versions BEGIN INSERT INTO log VALUES (new.version); END;
            CREATE TRIGGER kept BEFORE INSERT ON log BEGIN SELECT raise(ROLLBACK, 'kept'); END
            """,
            """
            CREATE TABLE versions(version INTEGER); CREATE TABLE log(version);
            CREATE TRIGGER kept AFTER UPDATE ON versions BEGIN
                INSERT INTO log SELECT version FROM versions ORDER BY version || '' COLLATE absent;
            END
            """,
            """
            CREATE TABLE versions(id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER UNIQUE);
            CREATE TABLE applied(version REFERENCES versions(version))
            """,
            """
            CREATE TABLE versions(version INTEGER UNIQUE, app TEXT DEFAULT 'x' UNIQUE ON CONFLICT REPLACE);
            CREATE TABLE applied(version REFERENCES versions(version))
            """,
            "CREATE TABLE versions(version); INSERT INTO versions VALUES (1.0)",
        ]
        + (Engine.current.hasGeneratedColumns
            ? ["CREATE TABLE versions(raw, version AS (raw + 0)); INSERT INTO versions(raw) VALUES (1)"] : [])

    @Test(
        "The app's own version record stays as it is, with a warning, if its table does not accept the new version",
        arguments: refusals)
    func leavesRefusedRecord(script: String) throws {
        let fixture = try fixture(
            """
            { "dbName": "app.db", "dbVersion": 2, "dbTables": [{ "note": [{ "body": "TEXT" }, { "tag": "TEXT" }] }],
              "recordedVersion": { "source": "table", "table": "versions", "column": "version" } }
            """,
            """
            \(script); CREATE TABLE note(body TEXT);
            \(script.contains("(raw)") ? "" : "INSERT INTO versions(version) VALUES (1)");
            """)
        let before = try fixture.values("SELECT version FROM versions ORDER BY typeof(version)")
        for kinds in [[Plan.Operation.Kind.addColumn, .stamp], []] {
            let report = try fixture.open().migration
            #expect(report.applied.map(\.kind) == kinds)
            #expect(report.warnings.besidesLeases.count == 1)
            #expect(report.warnings.besidesLeases.first?.contains("versions.version") == true)
            #expect(try fixture.values("SELECT version FROM versions ORDER BY typeof(version)") == before)
        }
    }
}
