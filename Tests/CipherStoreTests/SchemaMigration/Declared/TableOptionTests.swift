internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct TableOptionTests {
    private func configuration(_ options: String, version: Int = 25, tables: String = TableOptionTests.tables) throws
        -> Configuration
    {
        try Configuration(
            data: Data(
                """
                {"dbName": "app.db", "dbVersion": \(version), "dbTables": \(tables), "tableOptions": \(options)}
                """.utf8), place: "test.json")
    }

    static let tables = """
        [{"chat": [{"id": "INTEGER PRIMARY KEY"}, {"body": "TEXT"}, {"day": "TEXT"}]},
         {"tag": [{"name": "TEXT PRIMARY KEY"}, {"chat": "INTEGER"}]}]
        """
    static let options = """
        {"chat": {"renamedFrom": "message", "renamedColumns": {"body": "content"},
                  "indexes": {"chat_day": ["day", "body COLLATE NOCASE DESC"],
                              "chat_body": {"columns": ["body"], "unique": true, "where": "body <> ''"}}},
         "tag": {"withoutRowid": true, "constraints": ["FOREIGN KEY (chat) REFERENCES chat(id)", "UNIQUE (chat, name)"]}}
        """

    @Test(
        "Options of declared tables lead from an older schema to the same one as a fresh install",
        arguments: MigrationFixture.Form.all)
    func reachesSchema(form: MigrationFixture.Form) throws {
        let configuration = try configuration(Self.options)
        let fresh = try MigrationFixture(form)
        #expect(try fresh.launch(configuration).event == .created)
        let older = try MigrationFixture(
            form,
            """
            CREATE TABLE message(id INTEGER PRIMARY KEY, content TEXT); INSERT INTO message VALUES (4, 'a');
            CREATE TABLE tag(name TEXT PRIMARY KEY, chat INTEGER); INSERT INTO tag VALUES ('x', 4);
            CREATE INDEX chat_day ON message(content); CREATE INDEX others ON tag(chat);
            """)
        try older.launch(configuration, recorded: 23)
        #expect(try older.rows("SELECT id || body || name FROM chat JOIN tag ON chat = id") == ["\(Value.text("4ax"))"])
        var schema = try older.schema()
        #expect(schema.removeValue(forKey: "others") != nil, "indexes that nobody declared stay")
        #expect(Set(schema.keys) == Set(try fresh.schema().keys))
        for (name, sql) in try fresh.schema() where name.hasPrefix("chat_") { #expect(schema[name] == sql) }
        for table in ["chat", "tag"] {
            for pragma in ["table_info", "foreign_key_list", "index_list"] {
                let found = try older.rows("PRAGMA \(pragma)(\(table))").filter { !$0.contains("others") }
                #expect(found.count == (try fresh.rows("PRAGMA \(pragma)(\(table))").count), "\(pragma) of \(table)")
            }
        }
        #expect(try older.schema()["tag"]?.contains("WITHOUT ROWID") == true)
        #expect(try older.launch(configuration).applied.isEmpty)
    }

    @Test("Options of declared tables that are omitted leave a table unchanged")
    func inherits() throws {
        let script = """
            CREATE TABLE chat(id INTEGER PRIMARY KEY, body TEXT, day INTEGER, UNIQUE (body, day));
            CREATE TABLE tag(name TEXT, chat INTEGER, PRIMARY KEY (name)) WITHOUT ROWID;
            INSERT INTO chat VALUES (1, 'a', 2); INSERT INTO tag VALUES ('x', 1);
            """
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
        let report = try fixture.launch(try configuration("{}"))
        #expect(report.titles == ["rebuildTable chat"])
        #expect(try fixture.schema()["chat"]?.contains("UNIQUE (body, day)") == true)
        #expect(try fixture.schema()["tag"]?.contains("WITHOUT ROWID") == true)
        #expect(try fixture.launch(try configuration("{}")).applied.isEmpty)
        let none = try fixture.launch(try configuration(#"{"chat": {"constraints": []}}"#))
        #expect(none.titles == ["rebuildTable chat"])
        #expect(try fixture.schema()["chat"]?.contains("UNIQUE") == false)
    }

    @Test(
        "Options of declared tables that list the constraints remove all others, with a note",
        arguments: DestructiveChanges.allCases)
    func statesConstraints(policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT UNIQUE, day TEXT, CHECK (day <> ''));
            CREATE TABLE tag(name TEXT PRIMARY KEY, chat INTEGER UNIQUE); INSERT INTO chat VALUES (1, 'a', 'b');
            """)
        var configuration = try configuration(
            #"{"chat": {"constraints": ["UNIQUE (day)"]}, "tag": {"constraints": []}}"#)
        configuration.destructiveChanges = policy
        let report = try fixture.launch(configuration)
        #expect(report.titles == ["rebuildTable chat", "rebuildTable tag"])
        #expect(report.applied.allSatisfy { $0.risk == .none })
        #expect(report.withheld.isEmpty)
        #expect(report.findings.allSatisfy { $0.severity == .note })
        #expect(
            report.findings.map(\.message) == [
                "the migration removes AUTOINCREMENT from chat", "the migration removes CHECK (day <> '') from chat",
                "the migration removes UNIQUE (body) from chat", "the migration removes UNIQUE (chat) from tag",
            ])
        #expect(try fixture.rows("PRAGMA index_list(chat)").count == 1)
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    @Test(
        "An index of a name in double quotes is refused if the table declares no such column",
        arguments: [#"\"nme\""#, #"\"nme\" DESC"#, #"\"nme\" COLLATE NOCASE"#])
    func refusesStrings(part: String) throws {
        let options = #"{"chat": {"indexes": {"by_name": ["body", "\#(part)"]}}}"#
        let error = try storeError { try MigrationFixture().launch(try configuration(options)) }
        #expect(error?.code == .configuration)
        #expect(error?.detail.contains("tableOptions.chat.indexes.by_name") == true)
        #expect(error?.detail.contains("the table declares no column nme") == true)
    }

    @Test("Options of declared tables can make a table strict", .enabled(if: Engine.current.hasStrictTables))
    func makesStrict() throws {
        let fixture = try MigrationFixture()
        try fixture.launch(try configuration(#"{"chat": {"strict": true}}"#))
        #expect(try fixture.schema()["chat"]?.hasSuffix("STRICT") == true)
        try fixture.launch(try configuration(#"{"chat": {"strict": false}}"#))
        #expect(try fixture.schema()["chat"]?.hasSuffix("STRICT") == false)
    }

    @Test(
        "Options of declared tables that the engine does not support are refused by name",
        .enabled(if: !Engine.current.hasStrictTables))
    func refusesStrict() throws {
        let error = try storeError {
            try MigrationFixture().launch(try configuration(#"{"chat": {"strict": true}}"#))
        }
        #expect(error?.code == .engineTooOld)
    }

    static let faults = [
        (#"{"chta": {}}"#, #"tableOptions.chta: dbTables does not declare this table; did you mean "chat"?"#),
        (
            #"{"chat": {"renamedfrom": "x"}}"#,
            #"tableOptions.chat: unknown key "renamedfrom"; did you mean "renamedFrom"?"#
        ),
        (#"{"chat": {"renamedFrom": 1}}"#, "tableOptions.chat.renamedFrom must be text"),
        (
            #"{"chat": {"renamedColumns": {"bdy": "x"}}}"#,
            #"tableOptions.chat.renamedColumns.bdy: the table does not declare this column; did you mean "body"?"#
        ),
        (#"{"chat": {"withoutRowid": 1}}"#, "tableOptions.chat.withoutRowid must be true or false"),
        (#"{"chat": {"constraints": "x"}}"#, "tableOptions.chat.constraints must be a list"),
        (#"{"chat": {"constraints": ["x) --"]}}"#, "tableOptions.chat.constraints[0]: the SQL contains a closing"),
        (#"{"chat": {"indexes": {"i": []}}}"#, "tableOptions.chat.indexes.i: an index needs at least one column"),
        (
            #"{"chat": {"indexes": {"i": {"unique": true}}}}"#,
            #"tableOptions.chat.indexes.i: the key "columns" is missing"#
        ),
        (#"{"chat": {"indexes": {"sqlite_i": ["id"]}}}"#, "begins with sqlite_, which is reserved"),
        (#"{"chat": {}, "CHAT": {}}"#, "the options for this table are specified twice"),
    ]

    @Test("Options of declared tables that are wrong are refused, and the error names the place", arguments: faults)
    func namesPlace(options: String, message: String) throws {
        let error = try storeError { try configuration(options) }
        #expect(error?.code == .configuration)
        #expect(error?.description.contains(message) == true, "\(error?.description ?? "none")")
    }

    static let refused = [
        (#"{"chat": {"constraints": ["UNIQUE (day)", "UNIQUE (nosuch)"]}}"#, "tableOptions.chat.constraints[1]"),
        (#"{"chat": {"indexes": {"i": ["nosuch(day)"]}}}"#, "tableOptions.chat.indexes.i"),
        (#"{"tag": {"indexes": {"i": ["chat"]}}, "chat": {"indexes": {"I": ["day"]}}}"#, "tableOptions.tag.indexes.i"),
    ]

    @Test("Options of declared tables that SQLite rejects cause a typed error that names the place", arguments: refused)
    func reportsSQL(options: String, place: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE keep(x)")
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(try configuration(options)) }
        #expect(error?.code == .configuration)
        #expect(error?.path == "test.json")
        #expect(error?.detail.contains(place) == true, "\(error?.detail ?? "none")")
        #expect(try fixture.bytes() == before)
    }

    static let orders = [
        #"[{"chat": [{"day": "TEXT"}, {"id": "INTEGER PRIMARY KEY"}, {"body": "TEXT"}]}]"#,
        #"[{"chat": [{"id": "INTEGER PRIMARY KEY"}, {"added": "TEXT"}, {"body": "TEXT"}, {"day": "TEXT"}]}]"#,
        #"[{"chat": [{"added": "TEXT"}, {"body": "TEXT"}, {"day": "TEXT"}, {"id": "INTEGER PRIMARY KEY"}]}]"#,
    ]

    @Test(
        "Options of declared tables apply and column order is ignored, so nothing is lost or rebuilt",
        arguments: orders)
    func ignoresOrder(tables: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE chat(id INTEGER PRIMARY KEY, body TEXT, day TEXT); INSERT INTO chat VALUES (1, 'b', 'd')")
        let wanted = try configuration("{}", tables: tables)
        let report = try fixture.launch(wanted)
        #expect(report.titles == (tables.contains("added") ? ["addColumn chat.added"] : []))
        #expect(try fixture.rows("SELECT id || body || day FROM chat") == ["\(Value.text("1bd"))"])
        #expect(try fixture.launch(wanted).applied.isEmpty)
    }

    @Test("An index can contain a column whose name contains a quotation mark")
    func indexesQuotedNames() throws {
        let configuration = try configuration(
            #"{"t": {"indexes": {"i": ["x\"y"]}}}"#, tables: #"[{"t": [{"x\"y": "INT"}]}]"#)
        let fixture = try MigrationFixture()
        try fixture.launch(configuration)
        #expect(try fixture.schema()["i"] == #"CREATE INDEX "i" ON "t" ("x""y")"#)
    }
}
