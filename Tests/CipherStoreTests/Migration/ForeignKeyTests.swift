import CipherSQLite
import CipherStore
import TestSupport
import Testing

@Suite("Foreign keys in a migration")
struct ForeignKeyTests {
    @Test(
        "that would refer to nothing roll it back, and are switched back on", arguments: MigrationFixture.Form.all,
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

    @Test("that referred to nothing before do not hinder it, nor do those that cannot be checked", arguments: old)
    func toleratesOldViolations(script: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), script)
        let configuration = Configuration.declaring([
            "a": ["x": "", "n": "INTEGER REFERENCES c(id)"], "c": ["id": "INTEGER PRIMARY KEY"],
        ])
        #expect(
            try fixture.launch(configuration, recorded: 1).applied.map(\.kind) == [.addColumn, .createTable, .stamp])
    }
}
