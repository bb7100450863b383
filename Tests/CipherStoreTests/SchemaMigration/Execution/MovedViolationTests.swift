internal import CipherHistory
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct MovedViolationTests {
    /// The table `ch` has a row that references the existing row 1, and one that references the missing row 77.
    private static let script = """
        CREATE TABLE par(id INTEGER PRIMARY KEY); INSERT INTO par VALUES (1);
        CREATE TABLE ch(id INTEGER PRIMARY KEY, p INTEGER REFERENCES par(id)); INSERT INTO ch VALUES (1, 1), (2, 77);
        CREATE TABLE plain(p INTEGER REFERENCES par(id)); INSERT INTO plain VALUES (1), (1), (78); DELETE FROM plain WHERE rowid = 1;
        CREATE TABLE keyed(k TEXT PRIMARY KEY, p INTEGER REFERENCES par(id)) WITHOUT ROWID;
        INSERT INTO keyed VALUES ('a', 79), ('b', 1);
        """

    private func fixture() throws -> MigrationFixture {
        try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.script)
    }

    private static let kid = "CREATE TABLE kid(id INTEGER, p INTEGER REFERENCES par(id))"

    @Test(
        "Rows that violated a foreign key may move to another name, table or rowid",
        arguments: [
            ["ALTER TABLE ch RENAME TO kid"], [kid, "INSERT INTO kid SELECT * FROM ch", "DROP TABLE ch"],
            [
                "CREATE TABLE other(p INTEGER REFERENCES par(id))", "INSERT INTO other SELECT p FROM plain",
                "DROP TABLE plain", "ALTER TABLE other RENAME TO plain",
            ],
            [
                "ALTER TABLE par RENAME TO parent", "CREATE TABLE kid(id INTEGER, p TEXT REFERENCES parent(id))",
                "INSERT INTO kid SELECT * FROM ch", "DROP TABLE ch", "DROP TABLE plain", "DROP TABLE keyed",
            ], ["UPDATE ch SET p = p + 1 WHERE p = 77"],
        ])
    func tolerates(statements: [String]) throws {
        let fixture = try fixture()
        let source = OnceStatements(sql: statements)
        let report = try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        #expect(report.event == .adopted)
    }

    @Test(
        "Rows that violated a foreign key may stay when the table gains or loses WITHOUT ROWID",
        arguments: [true, false])
    func toleratesRowIDs(isWithout: Bool) throws {
        let fixture = try fixture()
        let configuration = try Configuration(
            data: """
                {"dbName": "app.db", "dbVersion": 2, "dbTables": [{"par": [{"id": "INTEGER PRIMARY KEY"}]},
                 {"ch": [{"id": "INTEGER PRIMARY KEY"}, {"p": "INTEGER REFERENCES par(id)"}]},
                 {"plain": [{"p": "INTEGER REFERENCES par(id)"}]},
                 {"keyed": [{"k": "TEXT PRIMARY KEY"}, {"p": "INTEGER REFERENCES par(id)"}]}],
                 "tableOptions": {"\(isWithout ? "ch" : "keyed")": {"withoutRowid": \(isWithout)}}}
                """.utf8Data, place: "app.json")
        let report = try fixture.launch(configuration, recorded: 1)
        #expect(report.applied.contains { $0.kind == .rebuildTable })
    }

    @Test(
        "Rows that violated a foreign key do not excuse other violations",
        arguments: [
            ([kid, "INSERT INTO kid SELECT id, p + 1 FROM ch", "DROP TABLE ch"], "2 rows of kid with references"),
            (
                [kid, "INSERT INTO kid SELECT * FROM ch", "INSERT INTO kid SELECT * FROM ch", "DROP TABLE ch"],
                "1 row of kid with references"
            ),
            ([kid, "INSERT INTO kid SELECT * FROM ch"], "1 row of kid with references"),
            ([kid, "INSERT INTO kid VALUES (1, 78)", "DROP TABLE ch"], "1 row of kid with references"),
            (
                [
                    "CREATE TABLE q(id PRIMARY KEY)", "CREATE TABLE kid(p REFERENCES q(id))",
                    "INSERT INTO kid VALUES (77)", "DROP TABLE ch",
                ],
                "1 row of kid with references"
            ), (["UPDATE keyed SET p = CASE k WHEN 'a' THEN 1 ELSE 80 END"], "1 row of keyed with references"),
        ])
    func refusesOthers(statements: [String], detail: String) throws {
        let fixture = try fixture()
        let before = try fixture.content()
        let source = OnceStatements(sql: statements)
        let error = try storeError {
            try fixture.with { try SchemaMigrator(version: 2, source: source).migrate($0) { nil } }
        }
        #expect(error?.detail.contains(detail) == true)
        #expect(try fixture.content() == before)
    }
}

extension String {
    fileprivate var utf8Data: Data { Data(utf8) }
}

/// A source that requests statements until they have been applied.
private struct OnceStatements: SchemaSource {
    var sql: [String]

    func plan(for state: DatabaseState) -> Plan {
        let operation = Plan.Operation(.createTable, sql: sql, reason: "once")
        return Plan(from: state.recorded, to: 2, operations: state.isAdopted ? [] : [operation])
    }
}
