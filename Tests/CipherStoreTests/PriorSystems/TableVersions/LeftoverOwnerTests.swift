internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// To which table an old one is restored, and when it stays unchanged.
struct LeftoverOwnerTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("TableVersions/MessageStore.json")
    }

    private static let chat = "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL, msg TEXT);"
    private static let attachment =
        "CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES chat(id), content BLOB);"
    private static let copying = "INSERT INTO chat(uid, msg) SELECT uid, msg FROM tableOld;"

    /// The app at an early release, with two messages and no contact.
    ///
    /// - Parameter renaming: Whether the app's upgrade of the messages had begun, so that the old table has its other
    ///   name.
    private func write(renaming: Bool = true, before: String = "", _ script: String) throws {
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
                    INSERT INTO tableVersion(name, version) VALUES ('chat', 1.0), ('contact', 1.0);
                    \(Self.chat) INSERT INTO chat VALUES (3, 'u', 'm'), (8, 'v', 'n');
                    CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, name TEXT); \(before)
                    """)
            try rename(renaming, connection)
            try connection.executeScript(text: script)
        }
    }

    /// Renames as engines before SQLite 3.26 did: references in other objects stay unchanged.
    private func rename(_ isWanted: Bool, _ connection: Connection) throws {
        guard isWanted else { return }
        try connection.executeScript(
            "PRAGMA legacy_alter_table = ON; ALTER TABLE chat RENAME TO tableOld; PRAGMA legacy_alter_table = OFF")
    }

    private func chats() throws -> [String] { try fixture.values("SELECT id || uid FROM chat ORDER BY id") }

    private func mentions() throws -> [String] {
        try fixture.values("SELECT name FROM sqlite_master WHERE name = 'tableOld' OR sql LIKE '%tableOld%'")
    }

    // MARK: The owner of an old table

    @Test("The rows of a table are not moved to another table that is empty")
    func keepsAwayFromEmptyTables() throws {
        try write("\(Self.chat) \(Self.copying) INSERT INTO chat(uid) VALUES ('later')")
        #expect(try storeError { try self.fixture.open() }?.code == .migration)
        let fixture = self.fixture.keepingLeftoverRows
        let report = try fixture.open()
        #expect(report.migration.withheld.map(\.table) == ["tableOld"])
        #expect(try fixture.values("SELECT count(*) FROM contact") == ["0"])
        #expect(try fixture.values("PRAGMA table_info(contact)").count == 3)
        #expect(try fixture.values("SELECT id || uid || msg FROM tableOld ORDER BY id") == ["3um", "8vn"])
        #expect(try chats() == ["1u", "2v", "3later"])
    }

    @Test("A table that its user empties after an opening does not get its old rows back")
    func staysEmptied() throws {
        try write("\(Self.chat) \(Self.copying) INSERT INTO chat(uid) VALUES ('later')")
        #expect(try storeError { try self.fixture.open() }?.code == .migration)
        let fixture = self.fixture.keepingLeftoverRows
        try fixture.open()
        try fixture.read { try $0.executeScript("DELETE FROM chat; DELETE FROM contact") }
        for _ in 1...2 {
            let report = try fixture.open().migration
            #expect(report.applied.isEmpty)
            #expect(report.withheld.map(\.table) == ["tableOld"])
        }
        #expect(try chats() == [])
        #expect(try fixture.values("SELECT count(*) FROM tableOld") == ["2"])
    }

    @Test("A missing table gets its rows back even if its declaration has lost a column since")
    func takesFormerColumns() throws {
        try write(renaming: false, "ALTER TABLE chat ADD COLUMN mood TEXT; UPDATE chat SET mood = 'good'")
        try fixture.read { try rename(true, $0) }
        try fixture.open()
        #expect(try chats() == ["3u", "8v"])
        #expect(try fixture.values("SELECT mood FROM chat") == ["good", "good"])
        #expect(try mentions() == [])
    }

    @Test("A table that is new in the app's current version is never the owner")
    func ignoresNewTables() throws {
        try write(
            renaming: false,
            "CREATE TABLE tableOld(id INTEGER PRIMARY KEY, body TEXT); INSERT INTO tableOld VALUES (4, 'x')")
        #expect(try fixture.open().migration.withheld.map(\.table) == ["tableOld"])
        #expect(try fixture.values("SELECT count(*) FROM draft") == ["0"])
    }

    /// The configuration declares only `contact`; the app also has, or had, the table `team`.
    @Test(
        "An old table that may belong to an undeclared table with a recorded version is not moved to a declared one",
        arguments: [
            // The columns fit both tables, and the rows were copied to the undeclared one.
            (
                """
                CREATE TABLE tableOld(id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE contact(id INTEGER PRIMARY KEY, name TEXT, phone TEXT);
                CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT, topic TEXT);
                INSERT INTO tableOld VALUES (3, 'friends'), (7, 'work'); INSERT INTO team(name) SELECT name FROM tableOld;
                """, 2
            ),
            // The undeclared table is missing.
            (
                """
                CREATE TABLE tableOld(id INTEGER PRIMARY KEY, name TEXT, topic TEXT);
                CREATE TABLE contact(id INTEGER PRIMARY KEY, name TEXT, phone TEXT);
                INSERT INTO tableOld VALUES (3, 'friends', 't');
                """, 1
            ),
        ])
    func suspectsUndeclared(script: String, version: Int) throws {
        var fixture = fixture
        let sql = "CREATE TABLE contact(id INTEGER PRIMARY KEY, name TEXT, phone TEXT)"
        fixture.configuration.schema = .tableVersions([.init(name: "contact", version: 2, definition: .sql(sql))])
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
                    INSERT INTO tableVersion(name, version) VALUES ('contact', \(version)), ('team', 1); \(script)
                    """)
        }
        let before = try fixture.digest()
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .migration)
        #expect(error.detail.contains("contact or team"))
        #expect(try fixture.digest() == before)
        // The developer decides.
        fixture.configuration.schema = .tableVersions([
            .init(name: "contact", version: 2, definition: .sql(sql), leftover: "tableOld")
        ])
        try fixture.open()
        #expect(try fixture.values("SELECT name FROM contact WHERE id = 3") == ["friends"])
    }

    @Test("An undeclared table with a recorded version that no longer exists does not prevent the return of a table")
    func ignoresRemovedTables() throws {
        try write("INSERT INTO tableVersion(name, version) VALUES ('removed', 1)")
        try fixture.open()
        #expect(try chats() == ["3u", "8v"])
    }

    // MARK: Under the same keys

    @Test("A foreign key of an undeclared table returns to its table if both tables have the same rows and keys")
    func takesForReference() throws {
        try write(
            before: "INSERT INTO contact(uid) VALUES ('c');",
            """
            CREATE TABLE log(a REFERENCES tableOld(id)); INSERT INTO log VALUES (8);
            \(Self.chat) INSERT INTO chat SELECT * FROM tableOld;
            """)
        let report = try fixture.open()
        #expect(report.migration.withheld.isEmpty)
        #expect(try mentions() == [])
        #expect(try chats() == ["3u", "8v"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    // MARK: References to new keys

    @Test(
        "Copies that another table refers to by a new key are kept, and so are the old rows",
        arguments: ["1", "3"])
    func keepsNewReferences(key: String) throws {
        // Key 3 belongs to the first message in the old table, and to the third message in the copy.
        try write(
            before: """
                INSERT INTO chat VALUES (9, 'w', 'o'); \(Self.attachment) INSERT INTO attachment VALUES (1, 8, x'aa');
                """,
            "\(Self.chat) \(Self.copying) INSERT INTO attachment VALUES (2, \(key), x'bb')")
        #expect(try storeError { try self.fixture.open() }?.code == .migration)
        let fixture = self.fixture.keepingLeftoverRows
        let report = try fixture.open()
        #expect(report.migration.withheld.map(\.table) == ["tableOld"])
        #expect(try chats() == ["1u", "2v", "3w"])
        #expect(try fixture.values("SELECT id FROM tableOld ORDER BY id") == ["3", "8", "9"])
        #expect(try fixture.values("SELECT chatId FROM attachment ORDER BY id") == ["8", key])
    }

    // MARK: Views and triggers

    @Test(
        "A view and another table's trigger that name the missing table do not prevent its return",
        arguments: [true, false])
    func takesBesideViews(isMadeAnew: Bool) throws {
        try write(
            before: """
                CREATE VIEW v AS SELECT * FROM chat;
                CREATE TRIGGER t AFTER INSERT ON contact BEGIN INSERT INTO chat(uid) VALUES (new.uid); END;
                """, isMadeAnew ? Self.chat : "")
        try fixture.open()
        #expect(try chats() == ["3u", "8v"])
        #expect(try fixture.values("SELECT uid FROM v ORDER BY 1") == ["u", "v"])
        try fixture.read { try $0.executeScript("INSERT INTO contact(uid) VALUES ('z')") }
        #expect(try chats() == ["3u", "8v", "9z"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("A view and a trigger that followed the table to tableOld follow it back", arguments: [true, false])
    func takesBackFollowers(isMadeAnew: Bool) throws {
        try write(
            """
            CREATE VIEW v AS SELECT * FROM tableOld;
            CREATE TRIGGER t AFTER INSERT ON contact BEGIN INSERT INTO tableOld(uid) VALUES (new.uid); END;
            CREATE VIEW bad AS SELECT * FROM nope;
            \(isMadeAnew ? Self.chat : "")
            """)
        try fixture.open()
        try fixture.read { try $0.executeScript("INSERT INTO contact(uid) VALUES ('z')") }
        #expect(try fixture.values("SELECT id || uid FROM v ORDER BY id") == ["3u", "8v", "9z"])
        #expect(
            try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'bad'") == [
                "CREATE VIEW bad AS SELECT * FROM nope"
            ])
    }

    // MARK: Foreign keys

    @Test("A reference that dangled in tableOld may still dangle once the table is back", arguments: [true, false])
    func toleratesOldViolations(isThere: Bool) throws {
        try write(
            renaming: isThere,
            """
            CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES tableOld(id), content BLOB);
            INSERT INTO attachment VALUES (1, 3, x'00'), (2, 77, x'01');
            """)
        try fixture.open()
        #expect(try fixture.values("SELECT chatId FROM attachment ORDER BY id") == ["3", "77"])
        #expect(try chats() == ["3u", "8v"])
        #expect(try mentions() == [])
    }
}
