internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct TableVersionsTests {
    let fixture: PriorFixture
    /// The objects that the example app leaves alone, because its configuration does not name them.
    static let own: Set<String> = ["setting", "chat_uid", "people"]

    init() throws {
        fixture = try PriorFixture("TableVersions/MessageStore.json")
    }

    static let chats = ["5 ana hello", "9 bo -", "4294967296 ana late"]

    static func chats(_ fixture: PriorFixture) throws -> [String] {
        try fixture.values("SELECT id || ' ' || uid || ' ' || coalesce(body, '-') FROM chat ORDER BY id")
    }

    // MARK: Every version

    @Test(
        "An app with a version for each table is migrated from every older release to a fresh install's schema",
        arguments: TableVersionsApp.releases)
    func migrates(release: Int) throws {
        try fixture.write { try TableVersionsApp.writeDatabase($0, release: release) }
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(try fixture.shape(without: Self.own) == fixture.fresh().shape())
        #expect(try Self.chats(fixture) == Self.chats)
        #expect(try fixture.values("SELECT id || uid FROM contact ORDER BY id") == ["3ana", "8bo"])
        #expect(
            try fixture.values("SELECT name || ' ' || version FROM tableVersion ORDER BY name")
                == ["attachment 1.0", "chat 1.4", "contact 2.0", "draft 1.0"])
        #expect(try fixture.values("PRAGMA user_version") == ["3"])
        // The app ignores tables that it does not name.
        #expect(report.migration.withheld.isEmpty)
        #expect(try fixture.values("SELECT name || hex(value) FROM setting") == ["theme00FF"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("An app with a version for each table records the version of every table at a fresh install")
    func creates() throws {
        #expect(try fixture.open().outcome == .created)
        #expect(try fixture.values("SELECT name || version FROM tableVersion ORDER BY name").count == 4)
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    // MARK: Versions

    @Test("An app with a version for each table refuses a table newer than the app, whatever the other versions are")
    func refusesDowngrade() throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.execute("UPDATE tableVersion SET version = 1.5 WHERE name = 'chat'")
        }
        let before = try fixture.digest()
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .downgrade)
        #expect(error.detail.contains("chat has version 1.5, but this app supports versions up to 1.4"))
        #expect(try fixture.digest() == before)
    }

    @Test(
        "An app with a version for each table refuses a version that is negative or not a number",
        arguments: ["'one'", "NULL", "-1", "-0.5", "x'31'", "''", "'-1'", "'1.3.1'", "'1.3 '", "'1e1'", "'.'"])
    func refusesBadRecord(value: String) throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            // Without a type, the column keeps text that looks like a number.
            try connection.executeScript(
                text: """
                    ALTER TABLE tableVersion RENAME TO old; CREATE TABLE tableVersion(name, version);
                    INSERT INTO tableVersion SELECT name, version FROM old; DROP TABLE old;
                    UPDATE tableVersion SET version = \(value) WHERE name = 'chat'
                    """)
        }
        let before = try fixture.digest()
        for attempt in [{ _ = try fixture.plan() }, { try fixture.open() }] {
            let error = try storeError(from: attempt)
            #expect(error?.code == .recordedVersion)
            #expect(error?.detail.contains("chat") == true)
        }
        #expect(try fixture.digest() == before)
    }

    @Test("An app with a version for each table refuses a version table with other columns")
    func refusesOtherTable() throws {
        try fixture.write { try $0.execute("CREATE TABLE tableVersion(a, name)") }
        #expect(try storeError { try fixture.open() }?.code == .recordedVersion)
    }

    @Test(
        "An app with a version for each table keeps its version table as it is",
        arguments: DestructiveChanges.allCases)
    func keepsVersionTable(policy: DestructiveChanges) throws {
        let sql = "CREATE TABLE tableVersion(name TEXT PRIMARY KEY, version DOUBLE CHECK (version >= 0), note TEXT)"
        let own = try PriorFixture("TableVersions/MessageStore.json")
        var fixture = own
        fixture.configuration.destructiveChanges = policy
        try fixture.write {
            try $0.executeScript(text: "\(sql); INSERT INTO tableVersion VALUES ('chat', 1.1, 'mine')")
        }
        try fixture.open()
        #expect(try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'tableVersion'") == [sql])
        #expect(try fixture.values("SELECT version || note FROM tableVersion WHERE name = 'chat'") == ["1.4mine"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("An app with a version for each table uses the highest of two versions, and keeps other tables' rows")
    func takesHighest() throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript(
                "INSERT INTO tableVersion(name, version) VALUES ('chat', 1.4), ('chat', 1.1), ('other', 'x'), (NULL, 7)"
            )
        }
        #expect(try fixture.open().outcome == .encrypted)
        #expect(try fixture.values("SELECT version FROM tableVersion WHERE name = 'chat'") == ["1.2", "1.4", "1.1"])
        #expect(try fixture.values("SELECT version FROM tableVersion WHERE name = 'other'") == ["x"])
        try fixture.read { try $0.execute("UPDATE tableVersion SET version = 1.41 WHERE id = 5") }
        #expect(try storeError { try fixture.open() }?.code == .downgrade)
    }

    @Test("A table's version that is stored as text is compared and updated as a number")
    func readsText() throws {
        try fixture.write { connection in
            try connection.executeScript(
                """
                CREATE TABLE tableVersion(name text, version text);
                INSERT INTO tableVersion VALUES ('chat', '1.25'), ('chat', '01.3'), ('contact', '2'), ('draft', '1.0');
                """)
        }
        #expect(try fixture.open().outcome == .encrypted)
        let versions = "SELECT name || ' ' || version FROM tableVersion ORDER BY name, version"
        let expected = ["attachment 1", "chat 1.25", "chat 1.4", "contact 2", "draft 1.0"]
        #expect(try fixture.values(versions) == expected)
        #expect(try fixture.open().migration.applied.isEmpty)
        try fixture.read { try $0.execute("UPDATE tableVersion SET version = '10' WHERE name = 'draft'") }
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .downgrade)
        #expect(try fixture.digest() == before)
    }

    @Test("Only the row with the highest version of a table is updated", arguments: ["", ", UNIQUE (name, version)"])
    func updatesHighest(constraint: String) throws {
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE tableVersion(id INTEGER PRIMARY KEY, name TEXT, version DOUBLE\(constraint));
                    INSERT INTO tableVersion(name, version) VALUES
                        ('chat', 1), ('CHAT', 1.2), ('draft', 0.5), ('draft', 1), ('contact', 2), ('attachment', 1);
                    """)
        }
        try fixture.open()
        let versions = try fixture.values("SELECT version FROM tableVersion WHERE id <= 4 ORDER BY id")
        #expect(versions == ["1.0", "1.4", "0.5", "1.0"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test(
        "An app with a version for each table compares versions as numbers, as its own code did",
        arguments: [(1.1, "1.10"), (1.9, "2"), (0, "0.50")])
    func comparesNumbers(recorded: Double, wanted: String) throws {
        let json = """
            { "dbName": "im.db", "dbVersion": 1,
              "tableVersions": { "t": { "version": "\(wanted)", "columns": [{ "a": "" }] } } }
            """
        var fixture = fixture
        fixture.configuration = try Configuration(data: Data(json.utf8), place: "app.json")
        try fixture.write { connection in
            try connection.execute(SQL(text: TableVersionRecord.createSQL))
            try connection.execute("INSERT INTO tableVersion(name, version) VALUES ('t', \(recorded))")
            try connection.execute("CREATE TABLE t(a)")
        }
        try fixture.open()
        #expect(try fixture.values("SELECT version = \(wanted) FROM tableVersion") == ["1"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    // MARK: Errors

    @Test("A rebuilt table keeps its keys, so references still lead to their rows")
    func keepsKeys() throws {
        try fixture.write { try TableVersionsApp.writeDatabase($0, release: 2) }
        try fixture.open()
        #expect(
            try fixture.values(
                "SELECT attachment.id || ' ' || uid FROM attachment JOIN chat ON chat.id = chatId ORDER BY 1")
                == ["2 bo", "4 ana"])
        #expect(
            try fixture.values("SELECT seq FROM sqlite_sequence WHERE name = 'chat'") == ["4294967300"])
        try fixture.read { try $0.execute("INSERT INTO chat(uid) VALUES ('new')") }
        #expect(try fixture.values("SELECT max(id) FROM chat") == ["4294967301"])
    }

    @Test("Foreign keys, triggers and views of other tables follow a rebuilt table, and none refers to tableOld")
    func keepsReferences() throws {
        try fixture.write { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.executeScript(
                """
                CREATE TABLE receipt(chat INTEGER REFERENCES chat(id) ON DELETE CASCADE); INSERT INTO receipt VALUES (5);
                CREATE VIEW by_user AS SELECT uid, count(*) AS n FROM chat GROUP BY uid;
                CREATE TRIGGER receipt_added AFTER INSERT ON receipt BEGIN UPDATE chat SET sentAt = 1 WHERE id = new.chat; END;
                """)
        }
        try fixture.open()
        #expect(try fixture.values("SELECT sql FROM sqlite_master WHERE sql LIKE '%tableOld%'") == [])
        #expect(try fixture.values("SELECT uid || n FROM by_user ORDER BY 1") == ["ana2", "bo1"])
        try fixture.read { connection in
            try connection.executeScript(
                "PRAGMA foreign_keys = ON; INSERT INTO receipt VALUES (9); DELETE FROM attachment; DELETE FROM chat WHERE id = 5"
            )
        }
        #expect(try fixture.values("SELECT chat FROM receipt") == ["9"])
        #expect(try fixture.values("SELECT sentAt FROM chat WHERE id = 9") == ["1"])
        #expect(try fixture.read { try $0.values(String.self, "PRAGMA integrity_check") } == ["ok"])
    }

    @Test("A rebuilt table that is declared by its columns keeps its table constraints and stays WITHOUT ROWID")
    func keepsTableConstraints() throws {
        let json = """
            { "dbName": "im.db", "dbVersion": 1, "destructiveChanges": "refuse",
              "tableVersions": { "t": { "version": 2, "columns": [{ "a": "TEXT" }, { "b": "TEXT" }] } } }
            """
        var fixture = fixture
        fixture.configuration = try Configuration(data: Data(json.utf8), place: "app.json")
        try fixture.write { connection in
            try connection.executeScript(
                "CREATE TABLE t(a TEXT, b INTEGER, PRIMARY KEY (a), UNIQUE (b)) WITHOUT ROWID; INSERT INTO t VALUES ('x', 1)"
            )
        }
        #expect(try fixture.open().migration.applied.contains { $0.kind == .rebuildTable && $0.table == "t" })
        let sql = try #require(try fixture.values("SELECT sql FROM sqlite_master WHERE name = 't'").first)
        for part in ["PRIMARY KEY (a)", "UNIQUE (b)", "WITHOUT ROWID"] { #expect(sql.contains(part)) }
        #expect(try fixture.values("SELECT a || typeof(b) FROM t") == ["xtext"])
    }

    @Test("A rebuilt table keeps its indexes")
    func keepsIndexes() throws {
        try fixture.write { try TableVersionsApp.writeDatabase($0, release: 1) }
        try fixture.open()
        #expect(
            try fixture.values("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'chat' ORDER BY 1")
                == ["chat_by_user", "chat_uid"])
    }

    @Test("A failure at any position of a table upgrade leaves everything unchanged", arguments: [1, 2])
    func failsAnywhere(release: Int) throws {
        try fixture.write { try TableVersionsApp.writeDatabase($0, release: release) }
        let (changed, count) = try fixture.positionsThatChange()
        #expect(changed.isEmpty)
        #expect(count > 6)
    }

    @Test("A renamed column keeps its values through the mapping")
    func keepsRenamedColumns() throws {
        try fixture.write { try TableVersionsApp.writeDatabase($0, release: 1) }
        try fixture.open()
        #expect(try fixture.values("SELECT body FROM chat WHERE id = 5") == ["hello"])
        #expect(try fixture.values("SELECT count(*) FROM chat WHERE body IS NOT NULL") == ["2"])
    }
}
