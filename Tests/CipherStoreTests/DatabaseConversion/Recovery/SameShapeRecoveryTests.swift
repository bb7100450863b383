internal import CipherDatabaseConversion
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Tables with the same columns and rowids: no row of one table may be recovered into the other.
@Suite struct SameShapeRecoveryTests {
    private static let counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"

    /// - Parameter comment: The length of a comment, which makes each definition as long as a page of the schema.
    private static func fixture(_ mode: String, _ extra: String = "", comment: Int = 0) throws -> RecoveryFixture {
        let note = comment > 0 ? "/*" + String(repeating: "p", count: comment) + "*/" : ""
        return try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE inbox(id INTEGER PRIMARY KEY, s TEXT NOT NULL\(note));
                CREATE TABLE trash(id INTEGER PRIMARY KEY, s TEXT NOT NULL\(note));
                \(counted) INSERT INTO inbox SELECT i, 'inbox ' || i || hex(zeroblob(30)) FROM n;
                \(counted) INSERT INTO trash SELECT i, 'trash ' || i || hex(zeroblob(30)) FROM n; \(extra)
                """, before: "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = \(mode);")
    }

    private static func leaf(_ table: String, _ row: Int, _ fixture: RecoveryFixture) throws -> UInt32 {
        try #require(
            fixture.places.pages.first { $0.key.table == table && $0.key.key == "\(row)" }?.value.first)
    }

    /// Expects the unchanged rows of a table, except for those on lost pages, and no others.
    private static func expect(
        _ table: String, of fixture: RecoveryFixture, without lost: Set<UInt32>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let found = try fixture.recovered().filter { $0.key.table == table }
        let invented = found.filter { fixture.places.rows[$0.key] != $0.value }
        let missing = fixture.places.whole(without: lost).filter { $0.table == table && found[$0] == nil }
        #expect(invented.isEmpty && missing.isEmpty, sourceLocation: sourceLocation)
    }

    private static func overwriteDefinition(of table: String, _ fixture: RecoveryFixture) throws {
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let place = try #require(data.firstRange(of: Data("CREATE TABLE \(table)".utf8)))
        // Flips one bit.
        data[place.lowerBound + 9] ^= 4
        try data.write(to: URL(filePath: fixture.path))
    }

    @Test(
        "Rows of a table with a damaged definition are not put into another table that lacks a leaf",
        arguments: ["NONE", "FULL"])
    func damagedDefinition(mode: String) throws {
        let fixture = try Self.fixture(mode)
        let lost = try Self.leaf("inbox", 400, fixture)
        try Self.overwriteDefinition(of: "trash", fixture)
        try fixture.damage([lost])
        let report = try fixture.recover()
        #expect(!report.complete && report.lostAndFound?.orphanedRows == 1000, "\(report)")
        try Self.expect("inbox", of: fixture, without: [lost])
    }

    @Test("Rows from before a column was added are not put into a table with as many columns as they have")
    func shortRows() throws {
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE a(id INTEGER PRIMARY KEY, y TEXT); CREATE TABLE b(id INTEGER PRIMARY KEY, q TEXT);
                \(Self.counted) INSERT INTO a SELECT i, 'in a ' || i FROM n;
                \(Self.counted) INSERT INTO b SELECT i + 5000, 'in b ' || i FROM n;
                ALTER TABLE a ADD COLUMN z DEFAULT 7;
                """)
        let original = try Connection(path: fixture.path, mode: .readOnly)
        let roots = try original.values(Int64.self, "SELECT rootpage FROM sqlite_master WHERE type = 'table'")
        original.close()
        try fixture.damage(roots.map { UInt32($0) }, .random)
        let report = try fixture.recover()
        #expect(!report.complete && report.lostAndFound?.orphanedRows == 2_000, "\(report)")
        #expect(try fixture.recovered().keys.allSatisfy { !["a", "b"].contains($0.table) })
    }

    @Test("A template's definition replaces a damaged one", arguments: ["NONE", "FULL"])
    func template(mode: String) throws {
        let fixture = try Self.fixture(mode)
        let lost = try Self.leaf("inbox", 400, fixture)
        try Self.overwriteDefinition(of: "trash", fixture)
        try fixture.damage([lost])
        let aside = try TemporaryFolder(inMemory: true)
        try LegacyFile.write(
            aside.path("template.db"),
            script: """
                CREATE TABLE trash(id INTEGER PRIMARY KEY, s TEXT NOT NULL);
                CREATE TABLE inbox(id INTEGER PRIMARY KEY, s TEXT NOT NULL);
                """)
        let report = try fixture.recover(template: aside.path("template.db"))
        try fixture.check(lost: [lost])
        #expect(report.lostAndFound == nil && report.tables.map(\.name) == ["inbox", "trash"], "\(report)")
        #expect(
            report.tables.last?.notes.contains { $0.contains("was taken from the template") } == true,
            "\(report)")
    }

    @Test("Rows that may belong to several tables of a template are not put into another table that fits")
    func contestedTables() throws {
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE one(who, what); CREATE TABLE two(who, what); CREATE TABLE empty(who, what);
                \(Self.counted) INSERT INTO one SELECT 'one ' || i, hex(zeroblob(20)) FROM n;
                \(Self.counted) INSERT INTO two SELECT 'two ' || i, hex(zeroblob(20)) FROM n;
                """)
        let template = try TemporaryFolder(inMemory: true)
        try FileManager.default.copyItem(atPath: fixture.path, toPath: template.path("template.db"))
        for name in ["one", "two"] { try Self.overwriteDefinition(of: name, fixture) }
        try fixture.damage([#require(fixture.places.roots["empty"])], .random)
        let report = try fixture.recover(template: template.path("template.db"))
        #expect(!report.complete, "\(report)")
        #expect(try !fixture.recovered().keys.contains { $0.table == "empty" }, "\(report)")
    }

    @Test("If the root and the definition of a table are lost, none of its pages is left to another table that fits")
    func settledTables() throws {
        let comment = String(repeating: "-", count: 200)
        // One page has a NULL, which the empty table forbids.
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE other(x /* \(comment) */); CREATE TABLE another(x /* \(comment) */);
                CREATE TABLE full(who, what /* \(comment) */); CREATE TABLE empty(who NOT NULL, what /* \(comment) */);
                \(Self.counted) INSERT INTO full SELECT CASE WHEN i > 1 THEN 'row ' || i END, hex(zeroblob(20)) FROM n WHERE i < 20;
                """)
        let template = try TemporaryFolder(inMemory: true)
        try FileManager.default.copyItem(atPath: fixture.path, toPath: template.path("template.db"))
        let data = try Data(contentsOf: URL(filePath: fixture.path))
        let schema = try ["full", "empty"].map { name in
            UInt32(try #require(data.firstRange(of: Data("table\(name)\(name)".utf8))).lowerBound / 512 + 1)
        }
        try #require(!schema.contains(1))
        try fixture.damage(Set(schema + [#require(fixture.places.roots["full"])]), .random)
        let report = try fixture.recover(template: template.path("template.db"))
        #expect(!report.complete && report.lostAndFound?.orphanedRows ?? 0 > 0, "\(report)")
        #expect(try !fixture.recovered().keys.contains { $0.table == "empty" }, "\(report)")
    }

    @Test(
        "If schema pages and interior pages are lost, only pages in the pointer map are assigned to a table",
        arguments: ["NONE", "FULL"])
    func lostDefinition(mode: String) throws {
        let fixture = try Self.fixture(mode, comment: 200)
        let data = try Data(contentsOf: URL(filePath: fixture.path))
        let schema = UInt32(try #require(data.firstRange(of: Data("tabletrashtrash".utf8))).lowerBound / 512 + 1)
        try #require(schema > 1)
        let root = try #require(fixture.places.roots["inbox"])
        let below = try #require(fixture.places.interior["inbox"]?.subtracting([root]).sorted())
        let interior = try #require(below.dropFirst().first)
        let lost = try Set([schema, interior] + [300, 310, 320].map { try Self.leaf("inbox", $0, fixture) })
        try fixture.damage(lost)
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.name) == ["inbox"], "\(report)")
        let found = try fixture.recovered().filter { $0.key.table == "inbox" }
        #expect(found.filter { fixture.places.rows[$0.key] != $0.value } == [:])
        #expect(try #require(report.lostAndFound).orphanedRows >= 1000)
        guard mode == "FULL" else { return }
        try Self.expect("inbox", of: fixture, without: lost)
        // The map names a root other than that of the table that the rows would match.
        let apart = try fixture.recovered().values.filter { $0.contains("text(\"trash ") }
        #expect(apart.count == 1000 && apart.allSatisfy { $0.contains("orphaned\")|null|") })
    }

    @Test(
        "If one table lacks its root and another a leaf, each row returns to its own table",
        arguments: ["NONE", "FULL"])
    func lostRoot(mode: String) throws {
        let fixture = try Self.fixture(mode)
        let lost = try Set([
            Self.leaf("inbox", 400, fixture), Self.leaf("inbox", 404, fixture), #require(fixture.places.roots["trash"]),
        ])
        try fixture.damage(lost)
        let report = try fixture.recover()
        try fixture.check(lost: lost)
        #expect(report.lostAndFound == nil, "\(report)")
    }

    @Test("A page is not assigned to a table if only some of its rows are in a range where pages are missing")
    func partOfRange() throws {
        // The leaves begin and end with different rows than the leaves of the other table.
        let fixture = try Self.fixture(
            "NONE", "DELETE FROM trash; INSERT INTO trash SELECT id, 'trash ' || id || hex(zeroblob(41)) FROM inbox;")
        let root = try #require(fixture.places.roots["inbox"])
        let below = try #require(fixture.places.interior["inbox"]?.subtracting([root]).sorted())
        let lost = try Set([#require(below.dropFirst().first), #require(fixture.places.roots["trash"])])
        try fixture.damage(lost)
        let report = try fixture.recover()
        let found = try fixture.recovered()
        #expect(found.filter { $0.key.table != "lost_and_found" && fixture.places.rows[$0.key] != $0.value } == [:])
        func missing(_ table: String) -> Set<String> {
            Set(fixture.places.rows.keys.filter { $0.table == table && found[$0] == nil }.map(\.key))
        }
        // The other table has at least one page of these too.
        let range = missing("inbox")
        #expect(!range.isEmpty && !report.complete)
        #expect(missing("trash").isSubset(of: range), "\(missing("trash").subtracting(range))")
    }

    @Test(
        "A header that has lost its list of free pages does not bring back a deleted row",
        arguments: ["a leaf", "the root"])
    func lostList(what: String) throws {
        let fixture = try Self.fixture("NONE", "COMMIT; BEGIN; DROP TABLE trash; DELETE FROM inbox WHERE id % 9 = 0;")
        let lost = try what == "a leaf" ? Self.leaf("inbox", 400, fixture) : #require(fixture.places.roots["inbox"])
        try fixture.damage([lost])
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data.replaceSubrange(32..<40, with: Data(count: 8))
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete && report.lostAndFound != nil, "\(report)")
        let found = try fixture.recovered().filter { $0.key.table == "inbox" }
        #expect(found.filter { fixture.places.rows[$0.key] != $0.value } == [:])
    }

    @Test("A row that only one of two indexes names is an old version, and is not recovered", arguments: 0..<4)
    func oldVersion(attempt: Int) throws {
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE inbox(id INTEGER PRIMARY KEY, kind TEXT, s TEXT);
                CREATE INDEX kinds ON inbox(kind); CREATE INDEX texts ON inbox(s); CREATE INDEX both ON inbox(kind, s);
                \(Self.counted) INSERT INTO inbox SELECT i, 'kind ' || i % 7, 'old ' || i || hex(zeroblob(30)) FROM n;
                COMMIT; BEGIN; DELETE FROM inbox;
                \(Self.counted) INSERT INTO inbox SELECT i, 'kind ' || i % 7, 'new ' || i || hex(zeroblob(30)) FROM n
                    WHERE i > 900;
                """, before: "PRAGMA secure_delete = OFF;")
        try fixture.damage(fixture.places.freeTrunks.union([#require(fixture.places.roots["inbox"])]))
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data.replaceSubrange(32..<40, with: Data(count: 8))
        try data.write(to: URL(filePath: fixture.path))
        _ = try fixture.recover()
        let found = try fixture.recovered().filter { $0.key.table == "inbox" }
        #expect(found == fixture.places.rows.filter { $0.key.table == "inbox" })
    }

    @Test("An index entry of only NULL and a rowid identifies no row of a table with a lost definition")
    func entriesOfNull() throws {
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE inbox(id INTEGER PRIMARY KEY, s TEXT NOT NULL, reply INTEGER);
                CREATE TABLE trash(id INTEGER PRIMARY KEY, s TEXT NOT NULL, reply INTEGER);
                CREATE INDEX replies ON inbox(reply);
                \(Self.counted) INSERT INTO trash SELECT i, 'trash ' || i || hex(zeroblob(30)), NULL FROM n;
                \(Self.counted) INSERT INTO inbox SELECT i, 'inbox ' || i || hex(zeroblob(30)), NULL FROM n;
                """)
        let lost = try #require(fixture.places.roots["inbox"])
        try Self.overwriteDefinition(of: "trash", fixture)
        try fixture.damage([lost])
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        let found = try fixture.recovered().filter { $0.key.table == "inbox" }
        #expect(found.filter { fixture.places.rows[$0.key] != $0.value } == [:])
    }
}
