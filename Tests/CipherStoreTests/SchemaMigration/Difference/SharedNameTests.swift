internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// SQLite keeps the names of triggers apart from those of tables, indexes and views.
struct SharedNameTests {
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        var wanted: [String]
        var renames: [String: String] = [:]
        /// The objects that the migration must keep or create, as `type name table`.
        var objects: [String]
    }

    private static let log = "CREATE TABLE log(m)"
    private static let rebuilt = "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n TEXT NOT NULL DEFAULT '')"
    private static let trigger = "CREATE TRIGGER s AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (new.a); END"

    private static let script = """
        \(log); CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n TEXT); \(trigger); INSERT INTO t VALUES (1, 'x', 'y');
        """

    static let changes = [
        Change(
            testDescription: "a changed index", script: script + "CREATE INDEX s ON t(a)",
            wanted: [log, rebuilt, "CREATE INDEX s ON t(a, n)"], objects: ["index s t", "trigger s t"]),
        Change(
            testDescription: "a changed index of another table",
            script: script + "CREATE TABLE u(b); CREATE INDEX s ON u(b)",
            wanted: [log, rebuilt, "CREATE TABLE u(b)", "CREATE INDEX s ON u(b DESC)"],
            objects: ["index s u", "trigger s t"]),
        Change(
            testDescription: "a changed trigger", script: script + "CREATE UNIQUE INDEX s ON t(a)",
            wanted: [
                log, rebuilt, "CREATE TRIGGER s AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.a); END",
            ], objects: ["index s t", "trigger s t"]),
        Change(
            testDescription: "an index that is declared for a renamed column",
            script: script + "CREATE VIEW bad AS SELECT * FROM nope",
            wanted: [log, "CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT, n TEXT)", "CREATE INDEX s ON t(b)"],
            renames: ["b": "a"], objects: ["index s t", "trigger s t", "view bad bad"]),
    ]

    @Test(
        "A migration keeps a trigger and an index of the same name", arguments: changes,
        DestructiveChanges.allCases)
    func keepsBoth(change: Change, policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), change.script)
        var source = WantedSource(statements: change.wanted, policy: policy)
        for (new, old) in change.renames { source.renames.columns[SQLName("t"), default: [:]][SQLName(new)] = old }
        try fixture.launch(source)
        #expect(
            try fixture.rows(
                """
                SELECT type || ' ' || name || ' ' || tbl_name FROM sqlite_master
                WHERE type <> 'table' AND sql IS NOT NULL ORDER BY 1
                """) == change.objects.map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT * FROM t").count == 1)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("An empty table is not replaced if it has an undeclared trigger with the name of a declared index")
    func keepsTable() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            \(Self.script) CREATE TABLE old(id INTEGER PRIMARY KEY, a TEXT, n TEXT);
            INSERT INTO old SELECT * FROM t; DELETE FROM t;
            """)
        var source = WantedSource(statements: [
            Self.log, "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n TEXT)", "CREATE INDEX s ON t(a)",
        ])
        source.renames.tables[SQLName("t")] = "old"
        let report = try fixture.launch(source)
        #expect(report.titles == ["createIndex s"])
        #expect(
            report.withheld.map(\.reason) == [
                "the table is not in the schema, and it cannot be renamed to t, whose trigger s is not in the schema"
            ])
        #expect(try fixture.rows("SELECT type FROM sqlite_master WHERE name = 's'").count == 2)
    }

    @Test("A column that only a trigger with the name of a changed index needs is kept")
    func keepsColumn() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), Self.script + "CREATE INDEX s ON t(n)")
        let source = WantedSource(
            statements: [Self.log, "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT)", "CREATE INDEX s ON t(n DESC)"],
            policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.withheld.map(\.reason) == ["the column is not in the schema, but the trigger s needs it"])
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.text("x"))"])
    }

    // MARK: The last check

    /// A source whose operations remove an object that they do not name.
    private struct ForgetfulSource: SchemaSource {
        let sql: String

        func plan(for state: DatabaseState) throws -> Plan {
            Plan(
                from: state.recorded, to: 25,
                operations: [Plan.Operation(.rebuildTable, table: "t", sql: [sql], reason: "a test")])
        }
    }

    @Test(
        "An object that a plan removes without naming it stops the migration",
        arguments: ["DROP INDEX i", "DROP TRIGGER s", "DROP VIEW v"])
    func checksObjects(sql: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            Self.script + "CREATE INDEX i ON t(a); CREATE VIEW v AS SELECT a FROM t")
        let before = try fixture.bytes()
        let error = try storeError {
            try fixture.with { connection in
                try SchemaMigrator(version: 25, source: ForgetfulSource(sql: sql)).migrate(connection) { 1 }
            }
        }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("but the plan does not include this removal") == true)
        #expect(try fixture.bytes() == before)
    }
}
