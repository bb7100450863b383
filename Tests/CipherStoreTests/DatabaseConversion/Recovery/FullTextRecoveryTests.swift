internal import CipherDatabaseConversion
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The recovery of full-text tables and their shadow tables.
@Suite struct FullTextRecoveryTests {
    private static let counted = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
        """

    @Test(
        "A full-text table is rebuilt from its content, whatever part of its index is lost",
        arguments: ["fts4", "fts5"])
    func fullText(module: String) throws {
        guard module == "fts4" || Engine.current.sqliteVersionNumber >= 3_020_000 else { return }
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING \(module)(title, body);
                \(Self.counted) INSERT INTO note SELECT 'title ' || i, 'some words about number' || i FROM n;
                """)
        let shadow = module == "fts5" ? "note_data" : "note_segments"
        let lost = try #require(fixture.places.pagesOfTrees[shadow])
        try fixture.damage(lost, .random)
        let report = try fixture.recover()
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(
            try connection.value(Int.self, "SELECT count(*) FROM note WHERE note MATCH 'words'") == 600, "\(report)")
        #expect(
            try connection.values(String.self, "SELECT title FROM note WHERE note MATCH 'number77'") == ["title 77"])
        #expect(report.complete, "\(report)")
    }

    @Test(
        "The app's setting of a full-text table is kept, although a rebuild deletes it",
        arguments: ["fts3", "fts4"], [[], ["note_segments"]])
    func mergeSetting(module: String, damaged: [String]) throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING \(module)(title, body);
                \(Self.counted) INSERT INTO note SELECT 'title ' || i, 'some words about number' || i FROM n;
                INSERT INTO note(note) VALUES ('automerge=7');
                """)
        for table in damaged { try fixture.damage(try #require(fixture.places.pagesOfTrees[table]), .random) }
        let report = try fixture.recover()
        #expect(report.complete, "\(report)")
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT value FROM note_stat WHERE id = 2") == 7)
        #expect(
            try connection.values(String.self, "SELECT title FROM note WHERE note MATCH 'number77'") == ["title 77"])
        #expect(try connection.value(String.self, "PRAGMA quick_check") == "ok")
    }

    @Test(
        "A full-text table whose rows were deleted securely is recovered",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_FTS5") && Engine.current.sqliteVersionNumber >= 3_042_000))
    func secureDelete() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING fts5(body); INSERT INTO note(note, rank) VALUES ('secure-delete', 1);
                \(Self.counted) INSERT INTO note SELECT 'some words about number' || i FROM n;
                DELETE FROM note WHERE rowid = 5;
                """)
        let report = try fixture.recover()
        #expect(report.complete, "\(report)")
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT v FROM note_config WHERE k = 'version'") == 5)
        #expect(try connection.values(Int.self, "SELECT rowid FROM note WHERE note MATCH 'number77'") == [77])
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("If the app's setting of a full-text table is lost, the recovery is not complete")
    func lostMergeSetting() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING fts4(body); INSERT INTO note VALUES ('some words');
                INSERT INTO note(note) VALUES ('automerge=7');
                """)
        try fixture.damage(try #require(fixture.places.pagesOfTrees["note_stat"]), .random)
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        #expect(report.tables.first { $0.name == "note_stat" }?.lostPages.count == 1)
    }

    @Test("A table that an FTS3 table would take for its own, and empty, keeps its rows")
    func tableLikeStatistics() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING fts3(body); INSERT INTO note VALUES ('some words');
                CREATE TABLE note_stat(id INTEGER PRIMARY KEY, v TEXT);
                \(Self.counted) INSERT INTO note_stat SELECT i, 'row ' || i FROM n;
                """)
        let report = try fixture.recover()
        #expect(report.notes.contains { $0.contains("copied unchanged") }, "\(report)")
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM note_stat") == 600)
        #expect(try connection.values(String.self, "SELECT body FROM note WHERE note MATCH 'words'") == ["some words"])
    }

    @Test(
        "A table named like a full-text shadow table is not rebuilt, and lacks only its lost rows",
        arguments: [("fts5", "docs_stat"), ("fts4", "docs_data"), ("fts3", "docs_docsize")])
    func tableBesideFullText(module: String, name: String) throws {
        guard module != "fts5" || Engine.current.sqliteVersionNumber >= 3_020_000 else { return }
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE docs USING \(module)(x); CREATE TABLE \(name)(id INTEGER PRIMARY KEY, v TEXT);
                INSERT INTO docs VALUES ('hello'); \(Self.counted) INSERT INTO \(name) SELECT i, 'row ' || i FROM n;
                """)
        let lost = try #require(fixture.places.pages.first { $0.key.table == name && $0.key.key == "300" }?.value)
        try fixture.damage(lost)
        let report = try fixture.recover()
        let table = try #require(report.tables.first { $0.name == name })
        #expect(!report.complete && table.lostPages == lost.map(Int.init), "\(report)")
        #expect(table.rows == fixture.places.whole(without: lost).filter { $0.table == name }.count)
        let found = try fixture.recovered().filter { $0.key.table == name }
        #expect(found.count == table.rows && found.allSatisfy { fixture.places.rows[$0.key] == $0.value })
    }

    @Test(
        "A full-text table that lost its settings gets those of a new one, and its rows are counted correctly",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_020_000))
    func fullTextSettings() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE VIRTUAL TABLE note USING fts5(body);
                \(Self.counted) INSERT INTO note SELECT 'some words about number' || i FROM n;
                """)
        let lost = try Set(["note_config", "note_docsize"].map { try #require(fixture.places.roots[$0]) })
        try fixture.damage(lost)
        let report = try fixture.recover()
        #expect(!report.complete, "\(report)")
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM note WHERE note MATCH 'words'") == 600)
        for table in report.tables {
            let rows = try connection.value(Int.self, SQL(text: "SELECT count(*) FROM \(table.name)"))
            #expect(rows == table.rows, "\(table)")
        }
    }

    @Test("A full-text table whose content is a view is copied unchanged, because only the app knows what it indexed")
    func view() throws {
        let fixture = try RecoveryFixture(
            script: """
                CREATE TABLE item(id INTEGER PRIMARY KEY, body); INSERT INTO item VALUES (1, 'some words');
                CREATE VIEW shown AS SELECT id AS rowid, 'other text' AS body FROM item;
                CREATE VIRTUAL TABLE note USING fts4(body, content='shown');
                INSERT INTO note(docid, body) SELECT id, body FROM item;
                """)
        let report = try fixture.recover()
        #expect(!report.complete && report.notes.contains { $0.contains("copied unchanged") }, "\(report)")
        let connection = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.values(Int.self, "SELECT docid FROM note WHERE note MATCH 'words'") == [1])
        #expect(try connection.value(String.self, "SELECT body FROM shown") == "other text")
    }
}
