internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Databases that have lost page 1, with their header and schema.
@Suite struct LostSchemaTests {
    private let aside: TemporaryFolder

    init() throws { aside = try TemporaryFolder(inMemory: true) }

    private func template(_ fixture: RecoveryFixture) throws -> String {
        let path = aside.path("template.db")
        try LegacyFile.write(path) { connection in
            let original = try Connection(path: fixture.path, mode: .readOnly)
            defer { original.close() }
            for sql in try original.values(
                String.self, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
            {
                try connection.executeScript(text: sql)
            }
        }
        return path
    }

    @Test(
        "With a healthy template that defines the tables, every row is recovered",
        arguments: RecoveryFixture.Damage.allCases,
        [1024, 4096])
    func template(kind: RecoveryFixture.Damage, pageSize: Int) throws {
        let fixture = try RecoveryFixture(pageSize: pageSize)
        let template = try template(fixture)
        try fixture.damage([1], kind)
        let report = try fixture.recover(template: template)
        #expect(!report.complete)
        try fixture.check(lost: [1])
    }

    @Test("Without a template every row is in lost_and_found")
    func apart() throws {
        let fixture = try RecoveryFixture(pageSize: 4096)
        try fixture.damage([1])
        let report = try fixture.recover()
        let apart = try #require(report.lostAndFound)
        let keyed = fixture.places.rows.keys.filter { $0.table == "tag" }.count
        #expect(apart.orphanedRows >= fixture.places.rows.count - keyed)
        #expect(report.tables == [] && !report.complete)
        #expect(report.notes.contains { $0.contains("lost_and_found") })
    }

    @Test("Two tables of the same shape are not distinguished, unless one has an index")
    func sameShape() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE a(x INTEGER, y TEXT); CREATE TABLE b(x INTEGER, y TEXT); CREATE TABLE c(x INTEGER, y TEXT);
                CREATE INDEX c_x ON c(x);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                    INSERT INTO a SELECT i, 'a' || i FROM n;
                INSERT INTO b SELECT x + 1000, 'b' || x FROM a; INSERT INTO c SELECT x + 5000, 'c' || x FROM a;
                """)
        let template = try template(fixture)
        try fixture.damage([1])
        let report = try fixture.recover(template: template)
        #expect(report.lostAndFound?.orphanedRows == 400, "\(report)")
        #expect(report.tables.map(\.rows) == [0, 0, 200])
        let found = try fixture.recovered()
        #expect(found.filter { $0.key.table == "c" } == fixture.places.rows.filter { $0.key.table == "c" })
    }

    @Test(
        "Entries of an index are not taken for rows of its WITHOUT ROWID table",
        arguments: ["CREATE INDEX o_b ON o(b)", "CREATE UNIQUE INDEX o_b ON o(b)"], ["TEXT", "INTEGER"])
    func entries(index: String, type: String) throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE o(a \(type) PRIMARY KEY, b \(type)) WITHOUT ROWID; \(index);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                    INSERT INTO o SELECT i, i + 1000000 FROM n;
                """)
        let template = try template(fixture)
        try fixture.damage([1])
        let report = try fixture.recover(template: template)
        #expect(!report.complete && report.lostAndFound?.orphanedRows == 600, "\(report)")
        let found = try fixture.recovered().filter { $0.key.table == "o" }
        #expect(found.isEmpty)
    }

    @Test(
        "One flipped bit in a definition does not cost the rows of other tables",
        arguments: [
            "INDEX message_author ON", "indexmessage_author", "sqlite_stat1(tbl,", "sqlite_sequence(name,",
            "TABLE sqlite_stat1", "TABLE sqlite_sequence",
        ])
    func flippedBit(place: String) throws {
        let fixture = try RecoveryFixture(script: RecoveryFixture.script + "; ANALYZE")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let range = try #require(data.range(of: Data(place.utf8)))
        data[range.upperBound - 4] ^= 1
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(report.tables.filter { !$0.name.hasPrefix("sqlite_") }.allSatisfy { $0.lostPages.isEmpty }, "\(report)")
        let found = try fixture.recovered()
        #expect(fixture.places.rows.allSatisfy { $0.key.table.hasPrefix("sqlite_") || found[$0.key] == $0.value })
    }

    @Test("If interior pages of a large schema are lost, its leaves are found")
    func largeSchema() throws {
        let tables = (0..<120).map {
            "CREATE TABLE t\($0)(a INTEGER, b\($0) TEXT); INSERT INTO t\($0) VALUES (\($0), 'x');"
        }
        let fixture = try RecoveryFixture(script: tables.joined())
        try fixture.damage([1])
        try fixture.recover()
        try fixture.check(lost: [1])
    }

    @Test(
        "Rows of a table that the template lacks are not put into another table with the same columns",
        arguments: [0, 5_000])
    func lackingTemplate(distance: Int) throws {
        let columns = "(id INTEGER PRIMARY KEY, uid TEXT, body TEXT)"
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE chat\(columns); CREATE TABLE archive\(columns);
                \(rows) INSERT INTO chat SELECT i, 'chat ' || i, hex(zeroblob(20)) FROM n;
                \(rows) INSERT INTO archive SELECT i + \(distance), 'archive ' || i, hex(zeroblob(20)) FROM n;
                """)
        try fixture.damage([1])
        let template = aside.path("lacking.db")
        try LegacyFile.write(template, script: "CREATE TABLE chat\(columns)")
        let report = try fixture.recover(template: template)
        #expect(!report.complete && report.lostAndFound?.orphanedRows == 800, "\(report)")
        // The column count differs from the rows', so they do not count as deleted rows.
        try FileManager.default.removeItem(atPath: template)
        try LegacyFile.write(template, script: "CREATE TABLE chat(id INTEGER PRIMARY KEY, uid TEXT)")
        try FileManager.default.removeItem(atPath: fixture.output)
        let other = try fixture.recover(template: template)
        #expect(!other.complete && other.lostAndFound?.orphanedRows == 800, "\(other)")
    }
}
