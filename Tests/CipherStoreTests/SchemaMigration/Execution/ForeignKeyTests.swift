internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct ForeignKeyTests {
    @Test(
        "Foreign keys that a migration would violate roll it back, and are turned on again",
        arguments: MigrationFixture.Form.all,
        [true, false])
    func refusesNewViolations(form: MigrationFixture.Form, wereOn: Bool) throws {
        let fixture = try MigrationFixture(
            form, "CREATE TABLE chat(id INTEGER PRIMARY KEY); INSERT INTO chat VALUES (1), (2)")
        let before = try fixture.content()
        let configuration = Configuration.declaring([
            "user": ["id": "INTEGER PRIMARY KEY"],
            "chat": ["id": "INTEGER PRIMARY KEY", "user": "INTEGER DEFAULT 7 REFERENCES user(id)"],
        ])
        try fixture.with { connection in
            try connection.execute(SQL(text: "PRAGMA foreign_keys = \(wereOn ? "ON" : "OFF")"))
            let error = try storeError { try SchemaMigrator(configuration: configuration).migrate(connection) { 1 } }
            #expect(error?.code == .migration)
            #expect(error?.detail.contains("2 rows of chat") == true)
            #expect(error?.detail.contains("user") == true)
            #expect(try connection.value(Bool.self, "PRAGMA foreign_keys") == wereOn)
            #expect(!connection.isInTransaction)
        }
        #expect(try fixture.content() == before)
    }

    static let old = [
        "CREATE TABLE a(x REFERENCES b(y)); CREATE TABLE b(y PRIMARY KEY); INSERT INTO a VALUES (1), (NULL)",
        "CREATE TABLE a(x PRIMARY KEY REFERENCES b(y)) WITHOUT ROWID; INSERT INTO a VALUES (1)",
        "CREATE TABLE a(x REFERENCES gone(y)); INSERT INTO a VALUES (1)",
        "CREATE TABLE a(x REFERENCES b(y)); CREATE TABLE b(y); INSERT INTO a VALUES (1)",
    ]

    @Test(
        "Foreign keys that were violated before, or cannot be checked, do not prevent a migration",
        arguments: old)
    func toleratesOldViolations(script: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), script)
        let definition = script.contains("PRIMARY KEY REFERENCES") ? "PRIMARY KEY " : ""
        let parent = script.contains("gone") ? "gone" : "b"
        let configuration = Configuration.declaring([
            "a": ["x": "\(definition)REFERENCES \(parent)(y)", "n": "INTEGER REFERENCES c(id)"],
            "c": ["id": "INTEGER PRIMARY KEY"],
        ])
        #expect(
            try fixture.launch(configuration, recorded: 1).applied.map(\.kind) == [.addColumn, .createTable, .stamp])
    }

    // SQLite 3.15 cannot change the schema of a database with an index whose collation is not registered.
    @Test(
        "A foreign key that needs a collation that is not registered does not prevent a migration",
        .enabled(if: Engine.current.checksTables))
    func toleratesUnregisteredCollation() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            \(Self.old[0]); PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = 'CREATE TABLE b(y TEXT COLLATE absent PRIMARY KEY)' WHERE name = 'b';
            """)
        let source = OnceSource(sql: "CREATE TABLE c(x)")
        let report = try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        #expect(report.event == .adopted)
    }

    @Test("Foreign keys that can be checked only after a migration do not prevent it")
    func toleratesNewlyCheckable() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.old[3])
        let source = OnceSource(sql: "CREATE UNIQUE INDEX b_y ON b(y)")
        let report = try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        #expect(report.event == .adopted)
    }

    @Test("Foreign keys violated in one parent may be violated in another parent, but not in another column")
    func comparesColumns() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE b(y PRIMARY KEY); CREATE TABLE a(w REFERENCES b(y), x REFERENCES gone(y));
            INSERT INTO a VALUES (NULL, 1);
            """)
        let before = try fixture.content()
        let source = OnceSource(sql: "UPDATE a SET w = 1, x = NULL")
        let error = try storeError {
            try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        }
        #expect(error?.detail.contains("1 row of a") == true)
        #expect(try fixture.content() == before)
        let configuration = Configuration.declaring([
            "a": ["w": "REFERENCES b(y)", "x": "REFERENCES b(y)"], "b": ["y": "PRIMARY KEY"],
        ])
        #expect(try fixture.launch(configuration, recorded: 1).applied.map(\.kind) == [.rebuildTable, .stamp])
    }

    @Test("Foreign keys are compared row by row: a repaired violation does not offset a new one")
    func comparesRows() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE b(y PRIMARY KEY); INSERT INTO b VALUES (2);
            CREATE TABLE a(x REFERENCES b(y)); INSERT INTO a VALUES (1), (2);
            """)
        let before = try fixture.content()
        let source = OnceSource(sql: "UPDATE b SET y = 1")
        let error = try storeError {
            try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        }
        #expect(error?.detail.contains("1 row of a") == true)
        #expect(try fixture.content() == before)
    }
}

/// A source that requests one statement until it has been applied.
struct OnceSource: SchemaSource {
    var sql: String

    func plan(for state: DatabaseState) -> Plan {
        let operation = Plan.Operation(.createTable, table: "a", sql: [sql], reason: "once")
        return Plan(from: state.recorded, to: 2, operations: state.isAdopted ? [] : [operation])
    }
}
