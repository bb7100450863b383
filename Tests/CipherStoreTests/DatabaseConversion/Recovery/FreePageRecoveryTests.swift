internal import CipherDatabaseConversion
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// How used pages are distinguished from free ones if the list of free pages is damaged.
@Suite struct FreePageRecoveryTests {
    /// A table without an index, some of whose pages were freed, including interior ones.
    private static let shrunk = """
        CREATE TABLE t(a INTEGER, b TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(20)) FROM n;
        COMMIT; BEGIN; DELETE FROM t WHERE a > 800;
        """

    private func trunk(_ fixture: RecoveryFixture) throws -> UInt32 { try #require(fixture.places.freeTrunks.first) }

    @Test(
        "If the free list and the root are lost, no row of a freed b-tree is recovered, and undecided rows stay apart"
    )
    func freedInterior() throws {
        let fixture = try RecoveryFixture(pageSize: 512, script: Self.shrunk, before: "PRAGMA secure_delete = OFF;")
        let lost = try fixture.places.freeTrunks.union([#require(fixture.places.roots["t"])])
        try fixture.damage(lost)
        let report = try fixture.recover()
        let found = try fixture.recovered()
        #expect(found.filter { $0.key.table == "t" && fixture.places.rows[$0.key] != $0.value } == [:])
        let living = fixture.places.whole(without: lost).count
        #expect(try #require(report.lostAndFound).orphanedRows >= living, "\(report)")
        #expect(!report.complete)
    }

    @Test("A pointer map identifies every live page, whatever else is lost", arguments: ["INCREMENTAL", "FULL"])
    func pointerMap(mode: String) throws {
        let fixture = try RecoveryFixture(
            pageSize: 512, script: Self.shrunk, before: "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = \(mode);")
        let lost = try fixture.places.freeTrunks.union([#require(fixture.places.roots["t"])])
        try fixture.damage(lost)
        let report = try fixture.recover()
        try fixture.check(lost: lost)
        #expect(report.lostAndFound?.orphanedRows ?? 0 == 0, "\(report)")
    }

    @Test("An old page of the pointer map does not make a free page part of a table")
    func oldPointerMap() throws {
        // Each row fills a page.
        let filled = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, v, b); CREATE INDEX i ON t(v);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                INSERT INTO t SELECT i, 'v' || i, 'old ' || hex(zeroblob(200)) FROM n;
            """
        let changed =
            filled + """
                COMMIT; BEGIN; DELETE FROM t WHERE id % 5 < 2; COMMIT; BEGIN;
                WITH RECURSIVE n(i) AS (SELECT 40 UNION ALL SELECT i - 5 FROM n WHERE i > 5)
                    INSERT INTO t SELECT i, 'v' || i, 'new ' || hex(zeroblob(200)) FROM n;
                """
        let pragmas = "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = INCREMENTAL;"
        let earlier = try RecoveryFixture(pageSize: 512, script: filled, before: pragmas)
        let fixture = try RecoveryFixture(pageSize: 512, script: changed, before: pragmas)
        let row = try #require(
            fixture.places.pages.first { key, pages in
                key.table == "t" && earlier.places.pages[key].map { $0.isSubset(of: fixture.places.freeLeaves) } == true
            })
        try fixture.restore([2], from: earlier)
        let lost = row.value.union(fixture.places.freeTrunks)
        try fixture.damage(lost, .random)
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        try fixture.check(lost: lost)
    }

    @Test("If the header wrongly states that there is a pointer map, the rows on its page are recovered")
    func wrongPointerMap() throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3); CREATE TABLE u(a); INSERT INTO u VALUES (4)"
        )
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data[55] = 4
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(report.tables.map(\.rows) == [3, 1], "\(report)")
        try fixture.check(lost: [])
    }

    @Test("A free list that names pages beyond the end of a truncated file is complete")
    func cutOff() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE t(a INTEGER, b TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                    INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(60)) FROM n;
                CREATE TABLE last(a); INSERT INTO last VALUES (zeroblob(5000));
                COMMIT; BEGIN; DELETE FROM t WHERE a < 200; COMMIT; BEGIN; DROP TABLE last;
                """, before: "PRAGMA secure_delete = OFF;")
        let pages = UInt32(try Data(contentsOf: URL(filePath: fixture.path)).count / 1024)
        try #require(fixture.places.freeLeaves.contains(pages))
        let root = try #require(fixture.places.roots["t"])
        try fixture.damage([root])
        try Data(contentsOf: URL(filePath: fixture.path)).dropLast(1024).write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        try fixture.check(lost: [root, pages])
        #expect(!report.notes.contains { $0.contains("free pages") }, "\(report.notes)")
    }

    @Test("If the header and pages that may list free ones are lost, rows that no index names stay apart")
    func headerAndMore() throws {
        let fixture = try RecoveryFixture(script: Self.shrunk, before: "PRAGMA secure_delete = OFF;")
        let folder = try TemporaryFolder(inMemory: true)
        try LegacyFile.write(folder.path("t.db"), script: "CREATE TABLE t(a INTEGER, b TEXT)")
        let lost = try fixture.places.freeTrunks.union([1, #require(fixture.places.roots["t"])])
        try fixture.damage(lost)
        try fixture.recover(template: folder.path("t.db"))
        let found = try fixture.recovered()
        #expect(found.filter { $0.key.table == "t" && fixture.places.rows[$0.key] != $0.value } == [:])
    }

    @Test("With secure_delete no deleted row is found")
    func secureDelete() throws {
        let fixture = try RecoveryFixture(script: Self.shrunk, before: "PRAGMA secure_delete = ON;")
        let root = try #require(fixture.places.roots["t"])
        try fixture.damage([root])
        let report = try fixture.recover()
        try fixture.check(lost: [root])
        #expect(report.lostAndFound == nil, "\(report)")
    }

    @Test("Old rows on free pages do not replace the lost rows of a table, although an index has the same keys")
    func oldVersions() throws {
        let fixture = try RecoveryFixture(
            pageSize: 4096,
            script: """
                CREATE TABLE junk(x);
                CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT, balance INTEGER, note TEXT);
                CREATE INDEX names ON account(name);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                    INSERT INTO account SELECT i, 'name ' || i, 1000000 + i, hex(zeroblob(30)) FROM n;
                COMMIT; BEGIN; DROP TABLE junk; COMMIT; BEGIN;
                CREATE TABLE fresh(id INTEGER PRIMARY KEY, name TEXT, balance INTEGER, note TEXT);
                INSERT INTO fresh SELECT id, name, 0, note FROM account; CREATE INDEX fresh_names ON fresh(name);
                DROP TABLE account; ALTER TABLE fresh RENAME TO account;
                """, before: "PRAGMA secure_delete = OFF;")
        try fixture.damage(fixture.places.freeTrunks.union(#require(fixture.places.pagesOfTrees["account"])))
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [0], "\(report)")
        #expect(report.lostAndFound?.orphanedRows == 400 && report.lostAndFound?.deletedRows == 0, "\(report)")
        #expect(report.tables[0].notes.contains { $0.contains("400 rows") && $0.contains("old versions") }, "\(report)")
    }

    @Test("If indexes contain every column, they show that a row is current, although its page may be free")
    func coveredRows() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE t(a INTEGER, b TEXT); CREATE INDEX t_a ON t(a); CREATE INDEX t_b ON t(b);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                    INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(60)) FROM n;
                CREATE TABLE other(a); INSERT INTO other VALUES (zeroblob(5000)); COMMIT; BEGIN; DROP TABLE other;
                """, before: "PRAGMA secure_delete = OFF;")
        let lost = try fixture.places.freeTrunks.union([#require(fixture.places.roots["t"])])
        try fixture.damage(lost)
        let report = try fixture.recover()
        try fixture.check(lost: lost)
        #expect(report.complete && report.tables.map(\.rows) == [600], "\(report)")
    }

    @Test("If pages are neither free nor part of a table, the recovery is not complete", arguments: [false, true])
    func rootRolledBack(areLost: Bool) throws {
        let filled = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(20)) FROM n;
            """
        let earlier = try RecoveryFixture(script: filled)
        let fixture = try RecoveryFixture(
            script: filled + "COMMIT; BEGIN; INSERT INTO t SELECT id + 400, a FROM t WHERE id <= 120;")
        let root = try #require(fixture.places.roots["t"])
        try fixture.restore([root], from: earlier)
        let before = try #require(earlier.places.pagesOfTrees["t"])
        let hidden = try #require(fixture.places.pagesOfTrees["t"]).subtracting(before)
        let rows = fixture.places.pages.values.filter { !$0.isDisjoint(with: hidden) }.count
        try #require(hidden.count > 1 && rows > 80)
        if areLost { try fixture.damage(hidden) }
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [520 - rows], "\(report)")
        #expect(report.lostAndFound?.orphanedRows == (areLost ? nil : rows), "\(report)")
        #expect(report.lostAndFound?.deletedRows ?? 0 == 0, "\(report)")
    }

    // MARK: After the last page

    /// A file that is longer than its header states, as a killed VACUUM leaves it: old pages follow.
    private func longer() throws -> RecoveryFixture {
        let script = """
            CREATE TABLE w(a); CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT, b TEXT); CREATE INDEX t_v ON t(v);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
                INSERT INTO w SELECT hex(zeroblob(300)) FROM n;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                INSERT INTO t SELECT i, 'value ' || i, 'old ' || i || hex(zeroblob(50)) FROM n
            """
        let old = try RecoveryFixture(script: script)
        let new = try RecoveryFixture(
            script: script + "; DROP TABLE w; COMMIT; VACUUM; BEGIN; UPDATE t SET b = 'new' || substr(b, 4)")
        let data = try Data(contentsOf: URL(filePath: new.path))
        let all = try Data(contentsOf: URL(filePath: old.path))
        try #require(all.count > 2 * data.count)
        try (data + all.dropFirst(data.count)).write(to: URL(filePath: new.path))
        return new
    }

    @Test("Pages after those that the header counts are not damage, and are not used")
    func afterTheLastPage() throws {
        let fixture = try longer()
        let report = try fixture.recover()
        try fixture.check(lost: [])
        #expect(report.complete, "\(report)")
        let before = try FolderDigest(fixture.folder.url)
        let inPlace = try InPlaceRecovery(
            of: DatabasePaths(fixture.path), provider: TestKeys.provider(), formats: [], options: ConversionOptions()
        ).runLocked()
        #expect(inPlace.wasSound, "\(inPlace)")
        #expect(try FolderDigest(fixture.folder.url) == before)
    }

    @Test("An old row after the last page does not replace a lost one, even if an index names it")
    func oldRowsAfterTheLastPage() throws {
        let fixture = try longer()
        let leaves = try #require(fixture.places.pagesOfTrees["t"]).subtracting([#require(fixture.places.roots["t"])])
        try fixture.damage(leaves, .random)
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        try fixture.check(lost: Set(leaves))
    }

    @Test("If the number of pages is not known, a recovery that needs pages to which nothing leads is not complete")
    func unknownPageCount() throws {
        let fixture = try longer()
        let leaves = try #require(fixture.places.pagesOfTrees["t"]).subtracting([#require(fixture.places.roots["t"])])
        try fixture.damage(leaves, .random)
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        // The counters of the header disagree.
        data[24] ^= 1
        try data.write(to: URL(filePath: fixture.path))
        #expect(try !fixture.recover().complete)
    }

    @Test("If the header counts too few pages, the pages after them are used")
    func tooFewPages() throws {
        let fixture = try RecoveryFixture()
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data[30] = 0
        data[31] = 9
        try data.write(to: URL(filePath: fixture.path))
        try fixture.recover()
        try fixture.check(lost: [])
    }
}
