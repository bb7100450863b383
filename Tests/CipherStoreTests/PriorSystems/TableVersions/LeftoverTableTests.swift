internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The database of an app that keeps a version for each table, after a kill of the app's own upgrade.
struct LeftoverTableTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("TableVersions/MessageStore.json")
    }

    /// A killed upgrade: its releases, and how far it progressed.
    struct Crash: Sendable, CustomTestStringConvertible {
        let from: Int
        let to: Int
        let point: TableVersionsApp.Point
        var testDescription: String { "\(from) to \(to), \(point)" }

        static func all(_ points: [TableVersionsApp.Point]) -> [Crash] {
            [(1, 2), (1, 3), (2, 3)].flatMap { step in points.map { Crash(from: step.0, to: step.1, point: $0) } }
        }
    }

    private func write(_ crash: Crash, keepsKeys: Bool = false, _ more: String = "") throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: crash.from)
            try TableVersionsApp.upgrade("chat", to: crash.to, until: crash.point, keepsKeys: keepsKeys, connection)
            try connection.executeScript(text: more)
        }
    }

    private func names() throws -> [String] {
        try fixture.values("SELECT name FROM sqlite_master WHERE name = 'tableOld' OR sql LIKE '%tableOld%'")
    }

    @Test(
        "The rows of tableOld are taken back if the table is missing or empty",
        arguments: Crash.all([.renamed, .created]))
    func givesNameBack(crash: Crash) throws {
        try write(crash)
        let report = try fixture.open()
        #expect(try TableVersionsTests.chats(fixture) == TableVersionsTests.chats)
        #expect(try names() == [])
        #expect(try fixture.shape(without: TableVersionsTests.own) == fixture.fresh().shape())
        #expect(report.migration.withheld.isEmpty)
        #expect(try fixture.values("SELECT seq FROM sqlite_sequence WHERE name = 'chat'") == ["4294967300"])
        #expect(try fixture.values("SELECT version FROM tableVersion WHERE name = 'chat'") == ["1.4"])
        if crash.from == 2 {
            #expect(
                try fixture.values("SELECT uid FROM attachment JOIN chat ON chat.id = chatId ORDER BY 1") == [
                    "ana", "bo",
                ])
        }
        // The objects that the rename changed are restored too.
        #expect(try fixture.values("SELECT tbl_name FROM sqlite_master WHERE name = 'chat_uid'") == ["chat"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("A failure at any position leaves a half-done upgrade unchanged", arguments: Crash.all([.renamed, .created]))
    func failsAnywhere(crash: Crash) throws {
        try write(crash)
        #expect(try fixture.positionsThatChange().changed.isEmpty)
    }

    @Test("The plan reports a half-done upgrade and changes nothing", arguments: Crash.all([.renamed, .created]))
    func plans(crash: Crash) throws {
        try write(crash)
        let before = try fixture.digest()
        let kinds = try fixture.plan().schema.operations.map(\.kind)
        #expect(kinds.contains(.renameTable))
        #expect(kinds.contains(.dropTable) == (crash.point == .created))
        #expect(try fixture.digest() == before)
    }

    @Test(
        "If the rows were copied under new keys that nothing refers to, the old keys are used",
        arguments: Crash.all([.copied]),
        ["", "CREATE TABLE reaction(chat INTEGER REFERENCES tableOld(id)); INSERT INTO reaction VALUES (5)"])
    func takesOldKeys(crash: Crash, more: String) throws {
        try write(crash, more)
        let report = try fixture.open()
        #expect(try TableVersionsTests.chats(fixture) == TableVersionsTests.chats)
        #expect(report.migration.withheld.isEmpty)
        #expect(try names() == [])
        #expect(try fixture.values("PRAGMA table_info(chat)").count == 5)
    }

    @Test(
        "If both tables hold rows of their own, both are kept once the configuration allows it",
        arguments: [
            "INSERT INTO chat(uid) VALUES ('new')", "UPDATE chat SET uid = 'ANA'", "UPDATE chat SET edited = 1",
        ])
    func keepsBoth(change: String) throws {
        try write(Crash(from: 1, to: 3, point: .copied), change)
        #expect(try storeError { try self.fixture.open() }?.code == .migration)
        let fixture = self.fixture.keepingLeftoverRows
        let report = try fixture.open()
        #expect(report.migration.withheld.map(\.table) == ["tableOld"])
        #expect(report.migration.withheld.first?.rows == 3)
        #expect(try fixture.values("SELECT id FROM tableOld ORDER BY id") == ["5", "9", "4294967296"])
        let again = try fixture.open().migration
        #expect(again.applied.isEmpty)
        #expect(again.withheld.map(\.table) == ["tableOld"])
    }

    @Test("A tableOld whose rows are all in the table is dropped")
    func dropsCopied() throws {
        try write(Crash(from: 1, to: 2, point: .copied), keepsKeys: true)
        let report = try fixture.open()
        #expect(try TableVersionsTests.chats(fixture) == TableVersionsTests.chats)
        #expect(try names() == [])
        #expect(report.migration.withheld.isEmpty)
        #expect(report.migration.applied.contains { $0.kind == .dropTable && $0.table == "tableOld" })
    }

    @Test("A trigger of the empty table with the name of a declared index is kept")
    func keepsTriggerNamedLikeIndex() throws {
        try write(
            Crash(from: 2, to: 2, point: .created),
            "CREATE TRIGGER chat_by_user AFTER INSERT ON chat BEGIN SELECT 1; END")
        try fixture.open()
        #expect(
            try fixture.values("SELECT type FROM sqlite_master WHERE name = 'chat_by_user' ORDER BY 1") == [
                "index", "trigger",
            ])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("An index and a trigger of the empty table are kept")
    func keepsObjectsOfEmptyTable() throws {
        try write(
            Crash(from: 2, to: 2, point: .created),
            "CREATE INDEX sent ON chat(sentAt); CREATE TRIGGER added AFTER INSERT ON chat BEGIN SELECT 1; END")
        try fixture.open()
        #expect(
            try fixture.values("SELECT tbl_name FROM sqlite_master WHERE name IN ('sent', 'added')") == [
                "chat", "chat",
            ])
        #expect(try TableVersionsTests.chats(fixture) == TableVersionsTests.chats)
    }

    @Test("A tableOld left by a failure does not prevent the rebuild of another table")
    func upgradesOthers() throws {
        try write(Crash(from: 2, to: 3, point: .created))
        try fixture.open()
        #expect(try fixture.values("SELECT id || uid FROM contact WHERE name IS NULL ORDER BY id") == ["3ana", "8bo"])
    }

    // MARK: The owner of the table

    @Test("A tableOld that may belong to two tables is refused until the configuration names its owner")
    func refusesAmbiguous() throws {
        let json = """
            { "dbName": "im.db", "dbVersion": 1, "tableVersions": {
                "a": { "version": 2, "columns": [{ "id": "INTEGER PRIMARY KEY" }, { "x": "" }]  },
                "b": { "version": 2, "columns": [{ "id": "INTEGER PRIMARY KEY" }, { "x": "" }] %@ } } }
            """
        var fixture = fixture
        func configure(_ more: String) throws -> Configuration {
            try Configuration(data: Data(json.replacing("%@", with: more).utf8), place: "app.json")
        }
        fixture.configuration = try configure("")
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    \(TableVersionRecord.createSQL); INSERT INTO tableVersion(name, version) VALUES ('a', 1), ('b', 1);
                    CREATE TABLE tableOld(id INTEGER PRIMARY KEY, x); INSERT INTO tableOld VALUES (4, 'kept');
                    """)
        }
        let before = try fixture.digest()
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .migration)
        #expect(error.detail.contains("a or b"))
        #expect(try fixture.digest() == before)
        fixture.configuration = try configure(#", "leftover": "tableOld""#)
        try fixture.open()
        #expect(try fixture.values("SELECT id || x FROM b") == ["4kept"])
        #expect(try fixture.values("SELECT count(*) FROM a") == ["0"])
    }

    @Test("A tableOld that fits no table is kept, and reported")
    func keepsForeign() throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript("CREATE TABLE tableOld(p, q, r); INSERT INTO tableOld VALUES (1, 2, 3)")
        }
        #expect(try fixture.open().migration.withheld.map(\.table) == ["tableOld"])
        #expect(try fixture.values("SELECT count(*) FROM tableOld") == ["1"])
    }

    @Test("A table with the suffix Old is taken back only if the table itself is missing", arguments: [true, false])
    func takesNamed(isGone: Bool) throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript(
                text: isGone
                    ? "ALTER TABLE contact RENAME TO contactOld"
                    : "CREATE TABLE contactOld(id INTEGER PRIMARY KEY, uid TEXT); INSERT INTO contactOld VALUES (1, 'x'); DELETE FROM contact"
            )
        }
        try fixture.open()
        #expect(try fixture.values("SELECT uid FROM contact ORDER BY id") == (isGone ? ["ana", "bo"] : []))
        #expect(
            try fixture.values("SELECT name FROM sqlite_master WHERE name = 'contactOld'")
                == (isGone ? [] : ["contactOld"]))
    }

    @Test("Dangling references left by the app's upgrades are repaired if the table is declared")
    func mendsReferences() throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript(
                """
                CREATE TABLE a2(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES "tableOld"(id), content BLOB);
                INSERT INTO a2 SELECT * FROM attachment; DROP TABLE attachment; ALTER TABLE a2 RENAME TO attachment;
                """)
        }
        try fixture.open()
        #expect(try fixture.values("PRAGMA foreign_key_list(attachment)") == ["0"])
        #expect(try names() == [])
        #expect(try fixture.values("SELECT chatId FROM attachment ORDER BY id") == ["9", "4294967296"])
        #expect(try fixture.shape(without: TableVersionsTests.own) == fixture.fresh().shape())
    }
}
