internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct StepDefinitionTests {
    private static let table = """
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, k TEXT NOT NULL DEFAULT 'A', p INTEGER \
        REFERENCES parent (id), UNIQUE (k))
        """
    private static let objects = [
        "CREATE INDEX ix ON t (k)", "CREATE VIEW v AS SELECT k FROM t",
        "CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT 1; END",
    ]

    /// A database at version 1 to which version 2 appends a column.
    private func fixture(_ script: [String]) throws -> StepsFixture {
        let parent = "CREATE TABLE parent (id INTEGER PRIMARY KEY)"
        let baseline = [parent, Self.table] + Self.objects
        let fixture = try StepsFixture(
            [
                "sql_default.plist": String(decoding: try JSONEncoder().encode(baseline), as: UTF8.self),
                "sql_update_2.plist": #"["ALTER TABLE t ADD COLUMN late TEXT"]"#,
            ], version: "2")
        try fixture.write {
            for sql in [parent] + script { try $0.execute(SQL(text: sql)) }
            try $0.executeScript("INSERT INTO t (k) VALUES ('kept'); PRAGMA user_version = 1")
        }
        return fixture
    }

    private func sql(_ fixture: StepsFixture) throws -> [String] {
        try fixture.read {
            try $0.values(
                String.self, "SELECT sql FROM sqlite_master WHERE type <> 'table' AND sql <> '' ORDER BY name")
        }
    }

    @Test(
        "A database that differs from its recorded version keeps the table, and the difference is reported",
        arguments: [
            ("k TEXT NOT NULL DEFAULT 'A'", "k BLOB NOT NULL DEFAULT 'A'", "t.k"),
            ("k TEXT NOT NULL DEFAULT 'A'", "k TEXT DEFAULT 'A'", "t.k"),
            ("k TEXT NOT NULL DEFAULT 'A'", "k TEXT NOT NULL DEFAULT 'a'", "t.k"),
            ("k TEXT NOT NULL", "k TEXT COLLATE NOCASE NOT NULL", "t.k"), (", UNIQUE (k)", "", "table t"),
            (" AUTOINCREMENT", "", "table t"), ("REFERENCES parent (id)", "", "table t"),
            ("REFERENCES parent (id)", "REFERENCES parent (id) ON DELETE CASCADE", "table t"),
            ("INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT PRIMARY KEY", "t.id"),
        ])
    func keepsTable(old: String, new: String, named: String) throws {
        let found = Self.table.replacing(old, with: new)
        let fixture = try fixture([found] + Self.objects)
        let findings = try fixture.plan().findings
        #expect(findings.allSatisfy { $0.severity == .warning && $0.table == "t" })
        #expect(findings.contains { $0.message.contains(named) && $0.message.contains(" is not changed: ") })
        let report = try fixture.open()
        #expect(report.migration.findings == findings)
        #expect(report.warnings.besidesLeases == findings.map(\.message))
        try fixture.read { (connection) throws in
            #expect(try connection.values(String.self, "SELECT k FROM t") == ["kept"])
            let sql = try connection.value(String.self, "SELECT sql FROM sqlite_master WHERE name = 't'") ?? ""
            #expect(sql.contains(new.isEmpty ? old : new) != new.isEmpty)
        }
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
    }

    @Test(
        "A database that differs only in formatting or in the user's own objects causes no report",
        arguments: [
            ("CREATE TABLE t (", "CREATE TABLE \"t\" ( /* its */\n"), ("id INTEGER", "[id] integer"),
            (", UNIQUE (k)", ", own TEXT UNIQUE REFERENCES parent (id) CHECK (own <> ''), UNIQUE (k)"),
        ])
    func saysNothing(old: String, new: String) throws {
        let fixture = try fixture(
            [Self.table.replacing(old, with: new)] + Self.objects.map { $0.replacing("N t", with: "n\n  \"T\"") }
                + ["CREATE INDEX own ON t (p)"])
        let plan = try fixture.plan()
        #expect(plan.findings.isEmpty)
        #expect(plan.notes.isEmpty)
        #expect(plan.operations.map(\.kind) == [.sql, .stamp])
    }

    @Test("A database with differing indexes, views and triggers gets them rebuilt, and keeps a view's triggers")
    func remakesObjects() throws {
        let own = "CREATE TRIGGER own INSTEAD OF DELETE ON v BEGIN SELECT 2; END"
        let fixture = try fixture([
            Self.table, "CREATE UNIQUE INDEX ix ON t (p, k)", "CREATE VIEW v AS SELECT 1 AS k", own,
            "CREATE TRIGGER tr AFTER DELETE ON t BEGIN SELECT 1; END",
        ])
        let plan = try fixture.plan()
        #expect(
            plan.operations.prefix(7).map(\.title) == [
                "dropTrigger tr", "dropView v", "dropIndex ix", "createIndex ix", "createView v", "createTrigger tr",
                "createTrigger own",
            ])
        #expect(plan.operations[0].reason.contains("differs from its definition in the recorded version 1"))
        let report = try fixture.open()
        #expect(report.warnings.besidesLeases.isEmpty)
        #expect(try sql(fixture) == [Self.objects[0], own, Self.objects[2], Self.objects[1]])
    }

    @Test("A database keeps an index as a half-done step made it")
    func keepsLaterIndex() throws {
        let fixture = try StepsFixture(
            [
                "sql_default.plist": #"["CREATE TABLE t (x, y)", "CREATE INDEX ix ON t (x)"]"#,
                "sql_update_2.plist": #"["DROP INDEX ix", "CREATE INDEX ix ON t (y)", "UPDATE t SET x = x * 10"]"#,
            ], version: "2")
        try fixture.write {
            try $0.executeScript(
                "CREATE TABLE t (x, y); CREATE INDEX ix ON t (y); INSERT INTO t VALUES (1, 2); PRAGMA user_version = 1")
        }
        #expect(try fixture.refusal().detail.contains("sql_update_2.plist[2]"))
    }
}
