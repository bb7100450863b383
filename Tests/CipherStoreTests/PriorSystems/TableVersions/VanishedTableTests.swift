internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

/// Completed upgrades that left views, triggers and foreign keys that name the dropped table `tableOld`.
struct VanishedTableTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("TableVersions/MessageStore.json")
    }

    private static let contact = "CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);"
    private static let log = """
        CREATE TABLE log(what TEXT, chatId INTEGER REFERENCES "tableOld"(id)); CREATE INDEX log_what ON log(what);
        INSERT INTO log(rowid, what, chatId) VALUES (7, 'x', 1);
        """
    private static let objects = """
        CREATE TABLE tableOld(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT);
        CREATE VIEW latest AS SELECT id, uid FROM "tableOld";
        CREATE TRIGGER noted AFTER INSERT ON log BEGIN UPDATE "tableOld" SET uid = 'noted' WHERE id = new.chatId; END;
        DROP TABLE tableOld;
        """
    private static let chat = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT);
        INSERT INTO chat VALUES (1, 'ana', 'hello'), (2, 'bo', NULL);
        """

    private static func attachment(_ parent: String) -> String {
        """
        CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES "\(parent)"(id), content BLOB);
        INSERT INTO attachment(chatId) VALUES (2);
        """
    }

    /// Writes the given objects in the given order.
    private func write(_ parts: String...) throws {
        try fixture.write { connection in
            try connection.executeScript(
                text: """
                    \(TableVersionRecord.createSQL); INSERT INTO tableVersion(name, version) VALUES ('chat', 1), ('contact', 1);
                    \(parts.joined(separator: "\n"))
                    """)
        }
    }

    private func parents(of table: String) throws -> [String] {
        try fixture.read { connection in
            var names: [String] = []
            try connection.forEachRow("PRAGMA foreign_key_list(\(identifier: table))") {
                names.append(try $0.get(at: 2))
            }
            return names
        }
    }

    @Test(
        "References to a missing tableOld are changed to the only table that they can refer to",
        arguments: [false, true])
    func mends(isVacuumed: Bool) throws {
        try write(
            Self.contact, Self.attachment("tableOld"), Self.log, Self.objects, Self.chat, isVacuumed ? "VACUUM" : "")
        let kinds = try fixture.plan().schema.operations.map(\.kind)
        #expect(kinds.contains(.createView) && kinds.contains(.createTrigger))
        let report = try fixture.open()
        #expect(report.warnings.besidesLeases.isEmpty)
        #expect(try fixture.values("SELECT uid FROM latest ORDER BY id") == ["ana", "bo"])
        #expect(try parents(of: "log") == ["chat"])
        #expect(try parents(of: "attachment") == ["chat"])
        #expect(try fixture.values("SELECT rowid || what || chatId FROM log") == ["7x1"])
        try fixture.read { try $0.execute("INSERT INTO log VALUES ('y', 2)") }
        #expect(try fixture.values("SELECT uid FROM chat ORDER BY id") == ["ana", "noted"])
        #expect(try fixture.values("SELECT count(*) FROM sqlite_master WHERE name = 'log_what'") == ["1"])
        #expect(try fixture.values("SELECT count(*) FROM sqlite_master WHERE sql LIKE '%tableOld%'") == ["0"])
        #expect(try fixture.open().migration.applied.isEmpty)
        #expect(try fixture.opening().validate().notes.isEmpty)
    }

    @Test("The only table with the columns of a view is the one that the view means")
    func fitsColumns() throws {
        try write(
            Self.contact, Self.chat,
            """
            CREATE TABLE tableOld(id INTEGER PRIMARY KEY, uid TEXT, msg TEXT);
            CREATE VIEW texts AS SELECT o.uid || ' ' || o.msg AS line FROM "tableOld" AS o WHERE msg IS NOT NULL;
            CREATE TRIGGER texts_new INSTEAD OF INSERT ON texts BEGIN INSERT INTO "tableOld"(uid, msg) VALUES ('t', new.line); END;
            DROP TABLE tableOld;
            """)
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
        // The column has been renamed, and the view is changed accordingly.
        #expect(try fixture.values("SELECT line FROM texts") == ["ana hello"])
        try fixture.read { try $0.execute("INSERT INTO texts VALUES ('later')") }
        #expect(try fixture.values("SELECT body FROM chat WHERE uid = 't'") == ["later"])
    }

    @Test(
        "If several tables are possible, the references are kept, and named in the plan, the report and the validation"
    )
    func keepsAmbiguous() throws {
        try write(Self.log, Self.contact, Self.objects, Self.chat, Self.attachment("chat"))
        let subjects = ["the view latest", "the trigger noted", "the table log"]
        let messages = try fixture.plan().schema.findings.map(\.message)
        let report = try fixture.open()
        let notes = try fixture.opening().validate().notes
        for subject in subjects {
            #expect(messages.contains { $0.hasPrefix(subject + " is not changed: ") && $0.contains("tableOld") })
            #expect(report.warnings.contains { $0.hasPrefix(subject) })
        }
        #expect(report.warnings.besidesLeases.count == 3)
        #expect(notes.contains("a foreign key of log refers to tableold, which does not exist"))
        #expect(notes.contains { $0.contains("the view latest cannot be compiled: no such table: main.tableOld") })
        #expect(notes.contains { $0.contains("the triggers of log cannot be compiled: ") })
        #expect(try parents(of: "log") == ["tableOld"])
        #expect(try fixture.values("SELECT count(*) FROM sqlite_master WHERE sql LIKE '%tableOld%'") == ["3"])
    }

    @Test("A table that may have been the last to have the name is another possible target")
    func keepsWhereOtherIsNewer() throws {
        try write(Self.attachment("tableOld"), Self.log, Self.objects, Self.chat, Self.contact)
        #expect(try fixture.open().warnings.besidesLeases.count == 3)
        #expect(try parents(of: "attachment") == ["chat"])
        #expect(try parents(of: "log") == ["tableOld"])
    }

    @Test("The name is not a reference to the table if it is in a string or is a column's name")
    func leavesOthers() throws {
        try write(
            Self.contact, Self.chat, "CREATE TABLE other(tableOld TEXT); INSERT INTO other VALUES ('x');",
            "CREATE VIEW others AS SELECT tableOld, 'tableOld' AS t FROM other;")
        #expect(try fixture.open().warnings.besidesLeases.isEmpty)
        #expect(
            try fixture.values("SELECT sql FROM sqlite_master WHERE name = 'others'") == [
                "CREATE VIEW others AS SELECT tableOld, 'tableOld' AS t FROM other"
            ])
    }
}
