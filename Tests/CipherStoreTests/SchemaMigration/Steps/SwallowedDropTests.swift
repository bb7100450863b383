internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Drops of a step that failed")
struct SwallowedDropTests {
    /// A database at version 3 whose step 2 could not drop its object.
    private func fixture(_ baseline: [String], drops: [String], found: [String]? = nil) throws -> StepsFixture {
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT)"
        func json(_ statements: [String]) throws -> String {
            String(decoding: try JSONEncoder().encode(statements), as: UTF8.self)
        }
        let fixture = try StepsFixture([
            "sql_default.plist": try json([table] + baseline), "sql_update_2.plist": try json(drops),
            "sql_update_3.plist": #"["CREATE TABLE z(a)"]"#,
        ])
        try fixture.write {
            for sql in [table] + (found ?? baseline) { try $0.execute(SQL(text: sql)) }
            try $0.executeScript(
                "CREATE TABLE db_version(db_version_num INTEGER); INSERT INTO db_version VALUES (3); INSERT INTO t VALUES (1, 'a')"
            )
        }
        return fixture
    }

    private func names(_ fixture: StepsFixture) throws -> [String] {
        try fixture.read {
            try $0.values(
                String.self, "SELECT name FROM sqlite_master WHERE type <> 'table' AND sql <> '' ORDER BY name")
        }
    }

    @Test("A unique index that should have been dropped is dropped, because it would continue to refuse rows")
    func dropsUniqueIndex() throws {
        let fixture = try fixture(["CREATE UNIQUE INDEX ti ON t(n)"], drops: ["DROP INDEX ti"])
        let plan = try fixture.plan()
        #expect(plan.operations.contains { $0.kind == .dropIndex && $0.object == "ti" })
        #expect(try fixture.open().migration.applied.contains { $0.kind == .dropIndex && $0.object == "ti" })
        #expect(try names(fixture) == [])
        try fixture.read { try $0.execute("INSERT INTO t VALUES (2, 'a')") }
    }

    @Test(
        "Other objects that should have been dropped are kept with a note",
        arguments: [
            (["CREATE INDEX ti ON t(n)"], "DROP INDEX ti", nil, "index ti"),
            (["CREATE UNIQUE INDEX ti ON t(n)"], "DROP INDEX ti", ["CREATE UNIQUE INDEX ti ON t(n, id)"], "index ti"),
            (["CREATE VIEW tv AS SELECT n FROM t"], "DROP VIEW tv", nil, "view tv"),
            (["CREATE TRIGGER tt AFTER INSERT ON t BEGIN SELECT 1; END"], "DROP TRIGGER tt", nil, "trigger tt"),
        ])
    func keeps(baseline: [String], drop: String, found: [String]?, subject: String) throws {
        let fixture = try fixture(baseline, drops: [drop], found: found)
        let note = "the \(subject), which a step should have removed, still exists and is kept"
        #expect(try fixture.plan().notes == [note])
        #expect(try fixture.open().migration.notes == [note])
        #expect(try names(fixture).count == 1)
    }

    @Test("An object that goes with its table or is created again later is not affected")
    func leavesOthers() throws {
        let made = ["CREATE TABLE o(x)", "CREATE UNIQUE INDEX oi ON o(x)"]
        let fixture = try fixture(made, drops: ["DROP TABLE o"])
        #expect(try fixture.plan().notes == ["the table o, which a step should have removed, still exists and is kept"])
        _ = try fixture.open()
        #expect(try names(fixture) == ["oi"])
        let back = try self.fixture(
            ["CREATE UNIQUE INDEX ti ON t(n)"], drops: ["DROP INDEX ti", "CREATE UNIQUE INDEX ti ON t(n)"])
        #expect(try back.plan().notes.isEmpty)
    }
}
