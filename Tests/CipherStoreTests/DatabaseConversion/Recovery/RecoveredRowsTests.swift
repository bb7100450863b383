internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Which rows are restored to their tables, and which are kept separately.
@Suite struct RecoveredRowsTests {
    private static let counted = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
        """

    @Test("Deleted rows of free pages stay apart, even if the free list and the root are lost")
    func deleted() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE t(a INTEGER, b TEXT); CREATE INDEX t_a ON t(a);
                \(Self.counted) INSERT INTO t SELECT i, 'row ' || i || hex(zeroblob(60)) FROM n;
                COMMIT; BEGIN; DELETE FROM t WHERE a BETWEEN 100 AND 400;
                """, before: "PRAGMA secure_delete = OFF;")
        let report = try fixture.recover()
        #expect(report.complete && report.lostAndFound?.deletedRows ?? 0 > 250, "\(report)")
        try fixture.check(lost: [])
        // Damages the first trunk of the free list, and the root.
        let header = try Data(contentsOf: URL(filePath: fixture.path)).prefix(40)
        let trunk = header[32..<36].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let root = try #require(fixture.places.roots["t"])
        try fixture.damage([trunk, root])
        try FileManager.default.removeItem(atPath: fixture.output)
        let worse = try fixture.recover()
        try fixture.check(lost: [trunk, root])
        #expect(worse.notes.contains { $0.contains("free pages") })
        // The index names every recovered row, but does not show that the other column is not an old version.
        #expect(!worse.complete && worse.tables.map(\.rows) == [299], "\(worse)")
    }

    @Test("A row whose damaged rowid equals another row's stays apart, and both are reported")
    func sameRowID() throws {
        let fixture = try RecoveryFixture(
            pageSize: 512,
            script: """
                CREATE TABLE t(a TEXT);
                \(Self.counted) INSERT INTO t SELECT printf('row %032d', i) FROM n WHERE i < 100;
                """)
        let pages = Dictionary(uniqueKeysWithValues: fixture.places.pages.map { ($0.key.key, $0.value) })
        let first = try #require((2..<100).first { pages["\($0)"] != pages["\($0 - 1)"] })
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let text = try #require(data.firstRange(of: Data(String(format: "row %032d", first).utf8)))
        // Before the text are the rowid, the length of the record's header, and the text's type.
        try #require(data[text.lowerBound - 3] == UInt8(first))
        data[text.lowerBound - 3] -= 1
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(report.tables.map(\.rows) == [98] && !report.complete, "\(report)")
        let found = try fixture.recovered()
        #expect(found.filter { $0.key.table == "t" && fixture.places.rows[$0.key] != $0.value } == [:])
        let apart = found.filter { $0.key.table == "lost_and_found" }.map(\.value)
        #expect(apart.count == 1 && apart[0].contains(String(format: "row %032d", first)), "\(apart)")
    }

    /// A database with long rows, and the overflow pages of each row in order.
    private func longRows() throws -> (fixture: RecoveryFixture, chains: [Int: [UInt32]]) {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
                INSERT INTO t VALUES (1, replace(hex(zeroblob(600)), '0', 'x')),
                    (2, replace(hex(zeroblob(1800)), '0', 'x')), (3, replace(hex(zeroblob(600)), '0', 'x'));
                """)
        let data = try Data(contentsOf: URL(filePath: fixture.path))
        func next(_ page: UInt32) -> UInt32 {
            data[(Int(page - 1) * 1024)..<(Int(page - 1) * 1024 + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        var chains: [Int: [UInt32]] = [:]
        for (key, pages) in fixture.places.pages {
            let chain = pages.intersection(fixture.places.overflow)
            var page = try #require(chain.first { page in !chain.contains { next($0) == page } })
            chains[try #require(Int(key.key)), default: []].append(page)
            while next(page) != 0 {
                page = next(page)
                chains[try #require(Int(key.key)), default: []].append(page)
            }
        }
        try #require(chains.mapValues(\.count) == [1: 1, 2: 3, 3: 1])
        return (fixture, chains)
    }

    /// Overwrites the last occurrence of a page number on a page, or the first bytes of the page.
    private func write(_ number: UInt32, over old: UInt32?, on page: UInt32, of fixture: RecoveryFixture) throws {
        func bytes(_ number: UInt32) -> Data {
            Data((0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) })
        }
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let extent = (Int(page - 1) * 1024)..<(Int(page) * 1024)
        let place =
            try old.map { try #require(data.range(of: bytes($0), options: .backwards, in: extent)) }
            ?? extent.lowerBound..<(extent.lowerBound + 4)
        data.replaceSubrange(place, with: bytes(number))
        try data.write(to: URL(filePath: fixture.path))
    }

    @Test("A row whose last overflow page names a next page is set aside, and the page is reported", arguments: [1, 2])
    func continuedChain(row: Int) throws {
        let (fixture, chains) = try longRows()
        let last = try #require(chains[row]?.last)
        // The page of another row, or one that does not exist.
        try write(row == 1 ? try #require(chains[3]?.first) : 900, over: nil, on: last, of: fixture)
        let report = try fixture.recover()
        #expect(report.tables.map(\.rows) == [2] && report.tables[0].lostPages == [Int(last)], "\(report)")
        #expect(report.lostAndFound?.damagedRows == 1 && !report.complete, "\(report)")
        let text = String(repeating: "x", count: row == 1 ? 1200 : 3600)
        let found = try fixture.recovered()
        let apart = found.filter { $0.key.table == "lost_and_found" }.map(\.value)
        #expect(found.filter { $0.key.table == "t" } == fixture.places.rows.filter { $0.key.key != "\(row)" })
        #expect(apart.count == 1 && apart[0].contains(text), "\(apart)")
    }

    @Test("A row that leads to the overflow pages of a longer row takes none of them")
    func foreignChain() throws {
        let (fixture, chains) = try longRows()
        let (own, foreign) = (try #require(chains[1]?.first), try #require(chains[2]?.first))
        let leaf = try #require(
            fixture.places.pages.first { $0.key.key == "1" }?.value.subtracting(fixture.places.overflow).max())
        try write(foreign, over: own, on: leaf, of: fixture)
        let report = try fixture.recover()
        #expect(report.tables.map(\.rows) == [2] && !report.complete, "\(report)")
        #expect(try fixture.recovered() == fixture.places.rows.filter { $0.key.key != "1" })
    }

    @Test("Duplicates under a UNIQUE index are all kept, and the index is named")
    func duplicates() throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a UNIQUE, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        let connection = try Connection(path: fixture.path, mode: .readWrite)
        // The second row gets the key of the first one, without an update of the index.
        try connection.executeScript(
            text: """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(a, b)' WHERE name = 't';
                CREATE TEMP TABLE kept AS SELECT * FROM sqlite_master WHERE type = 'index';
                DELETE FROM sqlite_master WHERE type = 'index';
                """)
        connection.close()
        let second = try Connection(path: fixture.path, mode: .readWrite)
        try second.executeScript(
            text: """
                UPDATE t SET a = 1; PRAGMA writable_schema = ON;
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(a UNIQUE, b)' WHERE name = 't';
                INSERT INTO sqlite_master VALUES ('index', 'sqlite_autoindex_t_1', 't', 3, NULL);
                """)
        second.close()
        let report = try fixture.recover()
        #expect(report.tables.first?.rows == 2 && !report.complete)
        #expect(report.tables.first?.notes.contains { $0.contains("sqlite_autoindex_t_1") } == true, "\(report)")
        #expect(try Set(fixture.recovered().values) == ["integer(1)|text(\"x\")", "integer(1)|text(\"y\")"])
    }

    @Test(
        "Rows from before a column was added have its default, and UTF-16 text stays unchanged",
        arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func encodings(encoding: String) throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE "tä b"(a TEXT, g REAL); \(Self.counted) INSERT INTO "tä b" SELECT 'ä€𝄞' || i, i FROM n;
                ALTER TABLE "tä b" ADD COLUMN c TEXT DEFAULT 'fehlt ä'; ALTER TABLE "tä b" ADD COLUMN d REAL DEFAULT 5;
                INSERT INTO "tä b" VALUES ('new', 1, 'x', 2); CREATE INDEX i ON "tä b"(c, g);
                """, before: "PRAGMA encoding = '\(encoding)'; PRAGMA auto_vacuum = FULL;")
        let report = try fixture.recover()
        #expect(report.complete, "\(report)")
        try fixture.check(lost: [])
        let root = try #require(fixture.places.roots["tä b"])
        try fixture.damage([root])
        try FileManager.default.removeItem(atPath: fixture.output)
        try fixture.recover()
        try fixture.check(lost: [root])
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA encoding") == encoding)
        #expect(try connection.value(Int.self, "PRAGMA auto_vacuum") == 1)
    }

    @Test("If a schema entry is damaged, only that entry is lost")
    func schemaEntry() throws {
        let fixture = try RecoveryFixture(
            script:
                "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); CREATE VIEW v AS SELECT a FROM t; CREATE TABLE u(b)")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let place = try #require(data.firstRange(of: Data("AS SELECT a".utf8)))
        // The replacement has the same length, but is not SQL.
        data.replaceSubrange(place, with: Data("AS DAMAGED ".utf8))
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(report.tables.map(\.rows) == [2, 0])
        #expect(report.notes.contains { $0.contains("view v") } && !report.complete)
    }

    @Test("A schema entry without a type or a name is reported, and the recovery is not complete")
    func unreadableSchemaEntry() throws {
        let fixture = try RecoveryFixture(script: "CREATE TABLE things(c)")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        // The types in the record: text of 5 and 6 bytes, twice. The replacement makes these four values NULL.
        let place = try #require(data.firstRange(of: Data([0x17, 0x19, 0x19, 0x01])))
        data.replaceSubrange(place, with: Data(repeating: 0, count: 4))
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete)
        #expect(report.notes.contains { $0.hasPrefix("pages or entries of the schema are damaged") }, "\(report)")
    }

    @Test("A file with fewer pages than its header counts is not reported as complete")
    func missingPages() throws {
        let fixture = try RecoveryFixture(script: "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let size = try fixture.pageSize
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let pages = data.count / size
        // Adds two pages to the header's count.
        data[31] = UInt8(pages + 2)
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [1], "\(report)")
        #expect(report.notes.contains { $0.contains("2 pages counted in its header are missing") }, "\(report)")
        // The count is not valid if the change counter differs.
        data[27] &+= 1
        try data.write(to: URL(filePath: fixture.path))
        try FileManager.default.removeItem(atPath: fixture.output)
        #expect(try fixture.recover().complete)
    }

    @Test("If an empty page replaces a table's only page, the recovery is not reported as complete")
    func emptyState() throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a, b); CREATE INDEX t_a ON t(a); INSERT INTO t VALUES (1, 2), (3, 4)")
        let root = try #require(fixture.places.roots["t"])
        try fixture.damage([root])
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let start = Int(root - 1) * (try fixture.pageSize)
        // A leaf without cells, like the table's first one.
        data.replaceSubrange(start..<start + 8, with: Data([13, 0, 0, 0, 0, 16, 0, 0]))
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [0], "\(report)")
        #expect(
            report.tables[0].notes.contains { $0.contains("2 rows are missing from this table") },
            "\(report)")
    }

    @Test("Rows on a page that replaced another table's page are assigned by their index")
    func exchanged() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE t(a, b, c); CREATE INDEX t_a ON t(a); INSERT INTO t VALUES (1, 2, 3), (4, 5, 6);
                CREATE TABLE u(a TEXT, b TEXT)
                """)
        let size = try fixture.pageSize
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let places = try ["t", "u"].map { Int(try #require(fixture.places.roots[$0]) - 1) * size }
        let pages = places.map { data[$0..<$0 + size] }
        for (place, page) in zip(places, pages.reversed()) { data.replaceSubrange(place..<place + size, with: page) }
        try data.write(to: URL(filePath: fixture.path))
        _ = try fixture.recover()
        try fixture.check(lost: [])
    }

    @Test("A row from an earlier state of a page is not mistaken for the live row elsewhere", arguments: [false, true])
    func earlierState(isIndexed: Bool) throws {
        let filled = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); \(isIndexed ? "CREATE INDEX t_a ON t(a);" : "")
            \(Self.counted) INSERT INTO t SELECT i * 10, 'old ' || i, hex(zeroblob(40)) FROM n;
            """
        let earlier = try RecoveryFixture(script: filled)
        let fixture = try RecoveryFixture(
            script: filled + """
                COMMIT; BEGIN; \(Self.counted) INSERT INTO t SELECT 1000 + i, 'new', hex(zeroblob(40)) FROM n WHERE i < 10;
                UPDATE t SET a = 'new ' || id;
                """)
        // A row that was moved to another page when its own page was split.
        let moved = try #require(
            earlier.places.pages.filter { row, pages in
                row.table == "t" && fixture.places.pages[row].map { $0.isDisjoint(with: pages) } == true
            }.keys.sorted { $0.key < $1.key }.first)
        let page = try #require(earlier.places.pages[moved]?.first)
        let place = Int(page - 1) * 1024..<Int(page) * 1024
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data.replaceSubrange(place, with: try Data(contentsOf: URL(filePath: earlier.path))[place])
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete && report.tables[0].lostPages == [Int(page)], "\(report)")
        let found = try fixture.recovered()
        #expect(fixture.places.whole(without: [page]).allSatisfy { found[$0] == fixture.places.rows[$0] })
        if isIndexed { try fixture.check(lost: [page]) }
    }

    /// Returns an indexed table of 600 rows, and the same table after 120 more rows were inserted.
    private func grown() throws -> (earlier: RecoveryFixture, later: RecoveryFixture) {
        let filled = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); CREATE INDEX t_a ON t(a);
            \(Self.counted) INSERT INTO t SELECT i, 'row ' || i, hex(zeroblob(30)) FROM n;
            """
        let earlier = try RecoveryFixture(pageSize: 4096, script: filled)
        let later = try RecoveryFixture(
            pageSize: 4096,
            script: filled + "COMMIT; BEGIN; INSERT INTO t SELECT id + 600, 'late ' || id, b FROM t WHERE id <= 120;")
        return (earlier, later)
    }

    @Test("An index with fewer entries than the table has rows does not show that no rows are missing")
    func indexRolledBack() throws {
        let (earlier, fixture) = try grown()
        let before = try #require(earlier.places.pagesOfTrees["t"])
        let lost = try #require(fixture.places.pagesOfTrees["t"]).subtracting(before)
        try fixture.restore(#require(earlier.places.pagesOfTrees["t_a"]), from: earlier)
        try fixture.damage(lost)
        let report = try fixture.recover()
        let rows = fixture.places.whole(without: lost).count
        try #require(rows > 600 && rows < 720)
        #expect(!report.complete && report.tables.map(\.rows) == [rows], "\(report)")
    }

    @Test("Rows of pages in use are not deleted rows only because an old version of an index does not name them")
    func rowsAfterIndex() throws {
        let (earlier, fixture) = try grown()
        try fixture.restore(#require(earlier.places.pagesOfTrees["t_a"]), from: earlier)
        try fixture.damage([#require(fixture.places.roots["t"])])
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [600], "\(report)")
        #expect(report.lostAndFound?.orphanedRows == 120 && report.lostAndFound?.deletedRows == 0, "\(report)")
    }

    @Test("An index with as many entries as the table has rows, but other keys, does not show that none are missing")
    func indexOfOtherKeys() throws {
        let filled = """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); CREATE INDEX t_a ON t(a);
            \(Self.counted) INSERT INTO t SELECT i, 'row ' || i, hex(zeroblob(60)) FROM n;
            """
        let earlier = try RecoveryFixture(pageSize: 512, script: filled)
        let fixture = try RecoveryFixture(
            pageSize: 512, script: filled + "COMMIT; BEGIN; UPDATE t SET a = 'Row ' || id WHERE id <= 20;")
        let root = try #require(fixture.places.roots["t"])
        let index = try #require(earlier.places.pagesOfTrees["t_a"])
        let table = try #require(fixture.places.pagesOfTrees["t"])
        let lost = try #require(fixture.places.interior["t"]).subtracting([root]).max()
        try #require(index.isDisjoint(with: table) && lost != nil)
        try fixture.damage([#require(lost)])
        let whole = try fixture.recover()
        #expect(whole.complete && whole.tables.map(\.rows) == [600], "\(whole)")
        try FileManager.default.removeItem(atPath: fixture.output)
        try fixture.restore(index, from: earlier)
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.map(\.rows) == [600], "\(report)")
    }
}
