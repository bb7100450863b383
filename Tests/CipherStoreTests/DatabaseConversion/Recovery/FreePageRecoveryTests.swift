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
}
