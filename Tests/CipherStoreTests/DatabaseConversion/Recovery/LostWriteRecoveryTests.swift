import CipherDatabaseConversion
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The recovery of a database in which one page is old, because the disk has lost a write.
@Suite struct LostWriteRecoveryTests {
    /// Returns the database after a change, with a page that was read before it.
    ///
    /// - Parameter page: Chooses the page.
    private func oldPage(
        _ script: String, change: String, pageSize: Int = 4096, autoVacuum: Int = 0,
        _ page: (_ before: RowPlaces, _ after: RowPlaces) throws -> UInt32?
    ) throws -> RecoveryFixture {
        let pragmas = "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = \(autoVacuum);"
        let before = try RecoveryFixture(pageSize: pageSize, script: script, before: pragmas)
        let after = try RecoveryFixture(
            pageSize: pageSize, script: script + "COMMIT; BEGIN; " + change, before: pragmas)
        try #require(try after.recover().complete)
        try FileManager.default.removeItem(atPath: after.output)
        let old = try #require(try page(before.places, after.places))
        try after.restore([old], from: before)
        return after
    }

    private func oldRoot(
        of table: String, _ script: String, change: String, autoVacuum: Int = 0
    ) throws -> RecoveryFixture {
        try oldPage(script, change: change, autoVacuum: autoVacuum) { before, _ in before.roots[table] }
    }

    /// Returns SQL that inserts rows into a table.
    private static func fill(_ table: String, _ rows: Int, _ values: String) -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
            INSERT INTO \(table) SELECT \(values) FROM n;
        """
    }

    private func expectIncomplete(_ fixture: RecoveryFixture) throws {
        let report = try fixture.recover()
        #expect(!report.complete && !(report.notes + report.tables.flatMap(\.notes)).isEmpty, "\(report)")
    }

    @Test(
        "If the free list names the pages to which a root leads, the recovery is not complete",
        arguments: [0, 2], ["t(a INTEGER, b TEXT)", "t(a INTEGER, b TEXT UNIQUE)"])
    func freedPages(autoVacuum: Int, table: String) throws {
        try expectIncomplete(
            oldRoot(
                of: "t",
                """
                CREATE TABLE \(table);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                    INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(30)) FROM n;
                CREATE TABLE z(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
                    INSERT INTO z SELECT zeroblob(900) FROM n;
                COMMIT; BEGIN; DROP TABLE z;
                """, change: "DELETE FROM t", autoVacuum: autoVacuum))
    }

    @Test(
        "If an index contradicts the rows of a table, the recovery is not complete",
        arguments: ["UPDATE t SET b = 'new' || b", "DELETE FROM t"])
    func contradictingIndex(change: String) throws {
        let rows = """
            CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
            INSERT INTO t SELECT i, 'row ' || i FROM n;
            """
        let before = try RecoveryFixture(pageSize: 512, script: rows, before: "PRAGMA secure_delete = OFF;")
        let fixture = try RecoveryFixture(
            pageSize: 512, script: rows + "COMMIT; BEGIN; \(change) WHERE a > 2 AND a < 9",
            before: "PRAGMA secure_delete = OFF;")
        let leaf = try #require(before.places.pages.first { $0.key.table == "t" && $0.key.key == "3" }?.value)
        try fixture.restore(leaf, from: before)
        try expectIncomplete(fixture)
    }

    @Test("A row that continues on a page of an index does not count as current", arguments: [6400, 7400])
    func sharedOverflow(length: Int) throws {
        try expectIncomplete(
            oldRoot(
                of: "t",
                """
                CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE TABLE u(a INTEGER PRIMARY KEY, b TEXT);
                CREATE INDEX ui ON u(b); INSERT INTO t VALUES (1, hex(zeroblob(\(length / 2))));
                """, change: "DELETE FROM t; INSERT INTO u VALUES (7, hex(zeroblob(1500)))"))
    }

    @Test(
        "A table WITHOUT ROWID does not count as recovered if an index uses its pages",
        arguments: [(150, 400), (200, 1000), (600, 2000), (600, 700)], [0, 2])
    func sharedTree(rows: (table: Int, index: Int), autoVacuum: Int) throws {
        try expectIncomplete(
            oldRoot(
                of: "w",
                """
                CREATE TABLE w(k TEXT, n INTEGER, PRIMARY KEY(k, n)) WITHOUT ROWID;
                CREATE TABLE u(s TEXT, f); CREATE INDEX ui ON u(s) WHERE f;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows.index))
                    INSERT INTO u SELECT printf('value %06d', i) || hex(zeroblob(10)), 0 FROM n;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows.table))
                    INSERT INTO w SELECT printf('key %06d', i) || hex(zeroblob(10)), i FROM n;
                """, change: "DELETE FROM w; UPDATE u SET f = 1", autoVacuum: autoVacuum))
    }

    @Test("A row that continues on a page of a full-text table does not count as current", arguments: [6400, 7400])
    func sharedWithFullText(length: Int) throws {
        try expectIncomplete(
            oldRoot(
                of: "t",
                """
                CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE VIRTUAL TABLE f USING fts4(x);
                INSERT INTO f VALUES ('one'); INSERT INTO t VALUES (1, hex(zeroblob(\(length / 2))));
                """,
                change: """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                        INSERT INTO f SELECT group_concat(i || 'word', ' ') FROM n;
                    DELETE FROM t;
                    """))
    }

    @Test(
        "A leaf that is still the empty page of a dropped table does not count as part of a table",
        arguments: ["", "WITHOUT ROWID"], [0, 2])
    func emptyLeaf(kind: String, autoVacuum: Int) throws {
        try expectIncomplete(
            oldRoot(
                of: "z",
                """
                CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT) \(kind);
                CREATE TABLE z(a INTEGER PRIMARY KEY, b TEXT) \(kind);
                """, change: "DROP TABLE z; " + Self.fill("t", 600, "i, 'row ' || i || hex(zeroblob(30))"),
                autoVacuum: autoVacuum))
    }

    @Test(
        "A leaf with deleted rows of another table WITHOUT ROWID does not count as part of a table",
        arguments: [0, 2], [20, 6000])
    func leafOfOther(autoVacuum: Int, length: Int) throws {
        // The first key may have overflow pages.
        func keys(_ name: String) -> String {
            "printf('\(name) %06d', i) || hex(zeroblob(CASE i WHEN 1 THEN \(length) ELSE 20 END)), i"
        }
        let fixture = try oldPage(
            """
            CREATE TABLE w(k TEXT, n INTEGER, PRIMARY KEY(k, n)) WITHOUT ROWID;
            CREATE TABLE u(k TEXT, n INTEGER, PRIMARY KEY(k, n)) WITHOUT ROWID;
            """ + Self.fill("w", 600, keys("w")),
            change: "DELETE FROM w; " + Self.fill("u", 600, keys("u")),
            autoVacuum: autoVacuum
        ) { before, after in
            let leaves = [(before, "w"), (after, "u")].map { places, table in
                (places.pagesOfTrees[table] ?? []).subtracting(places.interior[table] ?? [])
                    .subtracting(places.overflow)
            }
            return leaves[0].intersection(leaves[1]).min()
        }
        try expectIncomplete(fixture)
    }

    @Test("If page 1 is older than the list of free pages, tables may be missing", arguments: [0, 2], [30, 300])
    func oldFirstPage(autoVacuum: Int, rows: Int) throws {
        let fixture = try oldPage(
            "CREATE TABLE t(a); CREATE TABLE z(a);" + Self.fill("t", 400, "'row ' || i")
                + Self.fill("z", 40, "zeroblob(3000)") + "COMMIT; BEGIN; DELETE FROM z;",
            change: "CREATE TABLE n(a); " + Self.fill("n", rows, "'new ' || i || hex(zeroblob(200))"),
            autoVacuum: autoVacuum
        ) { _, _ in 1 }
        try expectIncomplete(fixture)
    }

    @Test("If the only free page of an old page 1 is part of a b-tree now, tables may be missing", arguments: [0, 2])
    func reusedTrunk(autoVacuum: Int) throws {
        let fixture = try oldPage(
            "CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE TABLE z(a); COMMIT; BEGIN; DROP TABLE z;",
            change: "CREATE TABLE n(a); INSERT INTO n VALUES ('new')", autoVacuum: autoVacuum
        ) { _, _ in 1 }
        try expectIncomplete(fixture)
    }

    @Test("If a table leads to pages after those that page 1 counts, tables may be missing")
    func olderPageCount() throws {
        let fixture = try oldPage(
            "CREATE TABLE t(a); INSERT INTO t VALUES (1);",
            change: "CREATE TABLE n(a); INSERT INTO n VALUES (2); " + Self.fill("t", 400, "hex(zeroblob(100))")
        ) { _, _ in 1 }
        try expectIncomplete(fixture)
    }

    @Test(
        "If an old node makes an R-Tree table unreadable, the recovery is not complete",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_RTREE") && Engine.current.checksTables))
    func oldNode() throws {
        let fixture = try oldPage(
            "CREATE VIRTUAL TABLE r USING rtree(id, low, high);" + Self.fill("r", 300, "i, i, i + 1"),
            change: "DELETE FROM r WHERE id > 20; " + Self.fill("r", 300, "i + 500, i * 7 % 300, i * 7 % 300 + 1")
        ) { before, after in
            let pages = [before, after].map { $0.pagesOfTrees["r_node"] ?? [] }
            return pages[0].intersection(pages[1]).subtracting([after.roots["r_node"] ?? 0]).min()
        }
        try expectIncomplete(fixture)
    }

    // MARK: Beside other damage

    private static let indexed =
        "CREATE TABLE t(a INTEGER PRIMARY KEY, v TEXT, c BLOB); CREATE INDEX ui ON t(v);"
        + fill("t", 600, "i, 'value ' || i || hex(zeroblob(25)), zeroblob(20)")

    private static func keyed(_ rows: Int) -> String {
        "CREATE TABLE n(k TEXT PRIMARY KEY, a, b, c, d) WITHOUT ROWID;"
            + fill("n", rows, "'key ' || i, 'new ' || i, i, hex(zeroblob(30)), 'end'")
    }

    @Test(
        "If a new table WITHOUT ROWID has the pages of an index that page 1 still names, the recovery is not complete",
        arguments: [0, 2], [400, 900])
    func droppedIndex(autoVacuum: Int, rows: Int) throws {
        try expectIncomplete(
            oldPage(Self.indexed, change: "DROP INDEX ui; " + Self.keyed(rows), autoVacuum: autoVacuum) { _, _ in 1 })
    }

    @Test("Records without a rowid are not entries of an index, although page 1 says so", arguments: ["", " WHERE f"])
    func droppedIndexOfSameWidth(condition: String) throws {
        try expectIncomplete(
            oldPage(
                "CREATE TABLE t(a INTEGER PRIMARY KEY, v, f); INSERT INTO t VALUES (1, 2, 0);"
                    + "CREATE INDEX i ON t(v)\(condition);",
                change: "DROP INDEX i; CREATE TABLE n(k TEXT PRIMARY KEY, b) WITHOUT ROWID;"
                    + Self.fill("n", 20, "'key ' || i, 'text'")
            ) { _, _ in 1 })
    }

    @Test("A damaged index does not hide that page 1 names no table for pages in use", arguments: [0, 2])
    func damagedIndex(autoVacuum: Int) throws {
        let fixture = try oldPage(
            Self.indexed, change: "DELETE FROM t WHERE a > 200; " + Self.keyed(900), autoVacuum: autoVacuum
        ) { _, _ in 1 }
        try fixture.damage([#require(fixture.places.roots["ui"])])
        try expectIncomplete(fixture)
    }

    @Test(
        "Rows to which nothing leads are not given to a damaged table of a full-text index, which is recomputed",
        arguments: [("fts4", "f_segments")]
            + (Engine.current.wasBuilt(with: "ENABLE_FTS5") ? [("fts5", "f_data")] : []), [0, 2])
    func damagedFullText(module: (name: String, table: String), autoVacuum: Int) throws {
        let fixture = try oldRoot(
            of: "t",
            "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE VIRTUAL TABLE f USING \(module.name)(x);"
                + "INSERT INTO f VALUES ('one');" + Self.fill("t", 300, "i, zeroblob(200)"),
            change: Self.fill("t", 600, "i + 300, zeroblob(200)"), autoVacuum: autoVacuum)
        try fixture.damage([#require(fixture.places.roots[module.table])], .ones)
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        #expect(report.lostAndFound?.orphanedRows ?? 0 > 500, "\(report)")
    }

    @Test(
        "If the order of a table's keys is not known, entries of an index that lacks pages do not count as current rows",
        arguments: [0, 2], [130, 140, 150, 160])
    func unknownOrder(autoVacuum: Int, rows: Int) throws {
        let fixture = try oldRoot(
            of: "w",
            "CREATE TABLE w(k TEXT COLLATE NOCASE, n INTEGER, PRIMARY KEY(k, n)) WITHOUT ROWID;"
                + "CREATE TABLE u(s TEXT, f); CREATE INDEX ui ON u(s) WHERE f;"
                + Self.fill("u", rows + 10, "printf('value %06d', i) || hex(zeroblob(10)), 0")
                + Self.fill("w", rows, "printf('w key %06d', i) || hex(zeroblob(10)), i"),
            change: "DELETE FROM w; UPDATE u SET f = 1", autoVacuum: autoVacuum)
        try fixture.damage([#require(fixture.places.roots["ui"])])
        try expectIncomplete(fixture)
    }
}
