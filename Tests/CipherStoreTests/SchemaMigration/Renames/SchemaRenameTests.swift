internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct SchemaRenameTests {
    static let script = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT CHECK (content <> ''), parent REFERENCES chat(id));
        INSERT INTO chat VALUES (7, 'one', NULL), (9, 'two', 7); DELETE FROM chat WHERE id = 9;
        INSERT INTO chat(content, parent) VALUES ('three', 7);
        CREATE UNIQUE INDEX chat_content ON chat(content) WHERE content IS NOT NULL;
        CREATE TABLE message(chat REFERENCES chat(id) ON DELETE CASCADE, note TEXT);
        INSERT INTO message VALUES (7, 'a'), (10, 'b');
        CREATE TABLE log(what);
        CREATE TRIGGER chat_update AFTER UPDATE OF content ON chat BEGIN INSERT INTO log VALUES (old.content); END;
        CREATE TRIGGER message_insert AFTER INSERT ON message BEGIN UPDATE chat SET content = new.note WHERE id = new.chat; END;
        CREATE VIEW talk AS SELECT chat.content AS said, note FROM chat JOIN message ON message.chat = chat.id;
        """

    private func wanted(
        _ statements: [String], tables: [String: String] = [:], columns: [String: [String: String]] = [:]
    )
        -> WantedSource
    {
        var source = WantedSource(statements: statements)
        for (new, old) in tables { source.renames.tables[SQLName(new)] = old }
        for (table, pairs) in columns {
            source.renames.columns[SQLName(table)] = Dictionary(
                uniqueKeysWithValues: pairs.map { (SQLName($0.key), $0.value) })
        }
        return source
    }

    @Test(
        "A declared rename of columns keeps values, and is followed by indexes, triggers and views",
        arguments: MigrationFixture.Form.all)
    func renamesColumns(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let source = wanted(
            [
                "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT CHECK (body <> ''), parent REFERENCES chat(id))"
            ], columns: ["chat": ["body": "content"]])
        let report = try fixture.launch(source, foreignKeys: true)
        if Engine.current.sqliteVersionNumber >= 3_025_000 {
            #expect(report.titles == ["renameColumn chat.content"])
        } else {
            #expect(report.titles.contains("rebuildTable chat"))
        }
        #expect(
            try fixture.rows("SELECT id || body FROM chat ORDER BY id")
                == ["7one", "10three"].map { "\(Value.text($0))" })
        #expect(
            try fixture.rows("SELECT said || note FROM talk ORDER BY 1")
                == ["onea", "threeb"].map { "\(Value.text($0))" })
        try fixture.with { connection in
            try connection.executeScript("INSERT INTO message VALUES (7, 'new')")
            #expect(throws: DatabaseError.self) { try connection.execute("UPDATE chat SET body = '' WHERE id = 7") }
            #expect(throws: DatabaseError.self) { try connection.execute("UPDATE chat SET body = 'new'") }
        }
        #expect(try fixture.rows("SELECT body FROM chat WHERE id = 7") == ["\(Value.text("new"))"])
        #expect(try fixture.rows("SELECT what FROM log") == ["\(Value.text("one"))"])
        #expect(try fixture.rows("PRAGMA foreign_key_check").isEmpty)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A declared rename of tables keeps rows and sequence, and is followed by references, triggers and views",
        arguments: MigrationFixture.Form.all)
    func renamesTables(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let source = wanted(
            [
                "CREATE TABLE talkative(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT CHECK (content <> ''), parent REFERENCES talkative(id))"
            ], tables: ["talkative": "chat"])
        let report = try fixture.launch(source, foreignKeys: true)
        #expect(report.titles.contains("renameTable chat"))
        #expect(report.withheld.map(\.table).sorted() == ["log", "message"])
        #expect(try fixture.rows("SELECT id FROM talkative ORDER BY id").count == 2)
        #expect(
            try fixture.rows("SELECT said || note FROM talk ORDER BY 1")
                == ["onea", "threeb"].map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT name FROM sqlite_sequence") == ["\(Value.text("talkative"))"])
        #expect(try fixture.rows("PRAGMA foreign_key_check").isEmpty)
        #expect(try fixture.schema()["message"]?.contains("talkative") == true)
        try fixture.with { connection in
            try connection.execute("PRAGMA foreign_keys = ON")
            try connection.executeScript("INSERT INTO message VALUES (7, 'new'); DELETE FROM talkative WHERE id = 10")
        }
        #expect(try fixture.rows("SELECT chat FROM message").count == 2, "references follow, so the delete cascades")
        #expect(try fixture.rows("SELECT what FROM log") == ["\(Value.text("one"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename can be combined with other changes and a rename of the same table")
    func combines() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "DELETE"), Self.script)
        let source = wanted(
            [
                "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT, up INTEGER REFERENCES chat(id), added TEXT NOT NULL DEFAULT 'x')",
                "CREATE TABLE letter(chat REFERENCES chat(id) ON DELETE CASCADE, line TEXT UNIQUE)",
            ], tables: ["letter": "message"],
            columns: ["chat": ["body": "content", "up": "parent"], "letter": ["line": "note"]])
        try fixture.launch(source)
        #expect(
            try fixture.rows("SELECT id || body || coalesce(up, '-') || added FROM chat ORDER BY id")
                == ["7one-x", "10three7x"].map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT chat || line FROM letter") == ["7a", "10b"].map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT * FROM talk").count == 2)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename of a table does not affect columns with the same name")
    func tellsColumns() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE chat(id INTEGER PRIMARY KEY); INSERT INTO chat VALUES (3);
            CREATE TABLE tag(chat INTEGER REFERENCES chat(id), name INTEGER); INSERT INTO tag VALUES (3, 1);
            CREATE INDEX tag_chat ON tag(chat);
            CREATE TRIGGER tag_update AFTER UPDATE OF chat ON tag
                BEGIN INSERT OR IGNORE INTO chat(id) VALUES (new.chat); DELETE FROM chat WHERE chat.id = old.chat; END;
            CREATE VIEW tagged AS SELECT tag.chat, chat.id FROM chat JOIN tag ON tag.chat = chat.id;
            """)
        let source = wanted(
            [
                "CREATE TABLE talk(id INTEGER PRIMARY KEY)",
                "CREATE TABLE tag(chat INTEGER REFERENCES talk(id), name TEXT)",
            ],
            tables: ["talk": "chat"])
        #expect(try fixture.launch(source).titles.contains("rebuildTable tag"))
        try fixture.with { try $0.executeScript("UPDATE tag SET chat = 9") }
        #expect(try fixture.rows("SELECT id FROM talk") == ["\(Value.integer(9))"])
        #expect(try fixture.rows("SELECT * FROM tagged") == ["\(Value.integer(9))|\(Value.integer(9))"])
        #expect(try fixture.schema()["tag_chat"] == "CREATE INDEX tag_chat ON tag(chat)")
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename can form a chain, which is applied from its end")
    func renamesChains() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)")
        let source = wanted(["CREATE TABLE t(b, c)"], columns: ["t": ["b": "a", "c": "b"]])
        try fixture.launch(source)
        #expect(try fixture.rows("SELECT b, c FROM t") == ["\(Value.integer(1))|\(Value.integer(2))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename of a column that never existed adds the new column, and reports this")
    func addsUnknown() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a)")
        let report = try fixture.launch(wanted(["CREATE TABLE t(a, c)"], columns: ["t": ["c": "b"]]))
        #expect(report.titles == ["addColumn t.c"])
        #expect(report.notes == ["t has no column b to rename to c, so a new column is added"])
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var statements = ["CREATE TABLE t(a, b)", "CREATE TABLE u(x)"]
        var tables: [String: String] = [:]
        var columns: [String: [String: String]] = [:]
    }

    static let faults = [
        Fault(
            testDescription: "tableOptions.t.renamedColumns.a: the renames of \"a\" form a cycle",
            columns: ["t": ["a": "b", "b": "a"]]),
        Fault(
            testDescription: "tableOptions.t.renamedFrom: the renames of \"t\" form a cycle",
            tables: ["t": "u", "u": "t"]),
        Fault(testDescription: "is renamed twice, to a and to b", columns: ["t": ["a": "old", "b": "OLD"]]),
        Fault(testDescription: "old is renamed twice", tables: ["t": "old", "u": "old"]),
        Fault(
            testDescription: "renamedColumns.c: a would be renamed to c, but the schema does not contain c",
            columns: ["t": ["c": "a"]]),
        Fault(
            testDescription: "renamedColumns.a: b would be renamed to a, but the schema still declares b",
            columns: ["t": ["a": "b"]]),
        Fault(testDescription: "renamedColumns.a: A is renamed to itself", columns: ["t": ["a": "A"]]),
        Fault(
            testDescription: "tableOptions.v.renamedColumns: the schema does not contain the table v",
            columns: ["v": ["a": "b"]]),
    ]

    @Test(
        "A declared rename that is impossible is a typed error that names the place, and changes nothing",
        arguments: faults)
    func refusesFaults(fault: Fault) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a, b); CREATE TABLE u(x)")
        let before = try fixture.bytes()
        let error = try storeError {
            try fixture.launch(wanted(fault.statements, tables: fault.tables, columns: fault.columns))
        }
        #expect(error?.code == .configuration)
        #expect(error?.path == nil)
        #expect(error?.detail.contains(fault.testDescription) == true)
        #expect(error?.advice.isEmpty == false)
        #expect(try fixture.bytes() == before)
    }

    // MARK: With broken objects

    @Test(
        "A declared rename is applied beside broken views and triggers, which stay unchanged",
        arguments: ["", "CREATE TABLE other(content)"])
    func renamesBesideBroken(more: String) throws {
        let broken = """
            CREATE VIEW bad AS SELECT * FROM nope;
            CREATE TRIGGER worse AFTER DELETE ON chat BEGIN DELETE FROM nope; END;
            \(more)
            """
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), Self.script + broken)
        let source = wanted(
            [
                "CREATE TABLE talks(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT CHECK (body <> ''), parent REFERENCES talks(id))"
            ], tables: ["talks": "chat"], columns: ["talks": ["body": "content"]])
        try fixture.launch(source, foreignKeys: true)
        #expect(
            try fixture.rows("SELECT id || body FROM talks ORDER BY id")
                == ["7one", "10three"].map { "\(Value.text($0))" })
        #expect(
            try fixture.rows("SELECT said || note FROM talk ORDER BY 1")
                == ["onea", "threeb"].map { "\(Value.text($0))" })
        #expect(
            try fixture.rows("SELECT sql FROM sqlite_master WHERE name = 'bad'")
                == ["\(Value.text("CREATE VIEW bad AS SELECT * FROM nope"))"])
        #expect(
            try fixture.rows("SELECT tbl_name FROM sqlite_master WHERE name = 'worse'") == ["\(Value.text("talks"))"])
        try fixture.with { connection in
            try connection.executeScript("INSERT INTO message VALUES (7, 'new')")
        }
        #expect(try fixture.rows("SELECT what FROM log") == ["\(Value.text("one"))"])
        #expect(try fixture.launch(source).titles == [])
    }

    @Test("A declared rename keeps the triggers of a view that it recreates")
    func keepsTriggersOfViews() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            Self.script + """
                CREATE VIEW bad AS SELECT * FROM nope;
                CREATE TRIGGER said INSTEAD OF DELETE ON talk BEGIN INSERT INTO log VALUES ('deleted'); END;
                """)
        try fixture.launch(
            wanted(
                [
                    "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT CHECK (body <> ''), parent REFERENCES chat(id))"
                ], columns: ["chat": ["body": "content"]]))
        try fixture.with { try $0.execute("DELETE FROM talk WHERE note = 'a'") }
        #expect(try fixture.rows("SELECT what FROM log") == ["\(Value.text("deleted"))"])
    }

    @Test("A declared rename of a table or a column keeps rows with dangling references")
    func toleratesOldViolations() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE a(x REFERENCES b(y)); CREATE TABLE b(y PRIMARY KEY); INSERT INTO a VALUES (1)")
        try fixture.launch(
            wanted(
                ["CREATE TABLE c(z REFERENCES b(y))", "CREATE TABLE b(y PRIMARY KEY)"], tables: ["c": "a"],
                columns: ["c": ["z": "x"]]))
        #expect(try fixture.rows("SELECT z FROM c") == ["\(Value.integer(1))"])
    }

    // MARK: Texts in which a name is not the renamed one

    struct Text: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        var wanted: [String]
        var tables: [String: String] = [:]
        var columns: [String: String] = [:]
        /// A statement after the migration, and a query with its result.
        var write: String
        var query: String
        var result: String
    }

    static let texts = [
        Text(
            testDescription: "a string in double quotes in a trigger",
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, n TEXT); CREATE TABLE log(field TEXT, v TEXT);
                CREATE TRIGGER tr AFTER UPDATE ON t BEGIN INSERT INTO log VALUES ("title", new.title); END;
                INSERT INTO t VALUES (1, 'hello', 'x');
                """,
            wanted: ["CREATE TABLE t(id INTEGER PRIMARY KEY, caption TEXT, n TEXT NOT NULL DEFAULT '')"],
            columns: ["caption": "title"], write: "UPDATE t SET caption = 'q'", query: "SELECT field || v FROM log",
            result: "titleq"),
        Text(
            testDescription: "a column of a full-text index that a trigger fills",
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, n TEXT); CREATE VIRTUAL TABLE fts USING fts4(title, n);
                CREATE TRIGGER tr AFTER INSERT ON t BEGIN
                    INSERT INTO fts(docid, title, n) VALUES (new.id, new.title, new.n); END;
                INSERT INTO t VALUES (1, 'hello', 'x');
                """,
            wanted: ["CREATE TABLE t(id INTEGER PRIMARY KEY, caption TEXT, n TEXT NOT NULL DEFAULT '')"],
            columns: ["caption": "title"], write: "INSERT INTO t VALUES (2, 'new', 'y')",
            query: "SELECT title FROM fts WHERE docid = 2", result: "new"),
        Text(
            testDescription: "a column of another table in a trigger, without a rebuild",
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE log(title TEXT);
                CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log(title) VALUES (new.title); END;
                """,
            wanted: ["CREATE TABLE t(id INTEGER PRIMARY KEY, caption TEXT)"], columns: ["caption": "title"],
            write: "INSERT INTO t VALUES (2, 'new')", query: "SELECT title FROM log", result: "new"),
        Text(
            testDescription: "a column with the name of the table",
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE stat(t INTEGER, n INTEGER);
                CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE stat SET n = n + 1 WHERE t = new.id; END;
                INSERT INTO stat VALUES (2, 6);
                """,
            wanted: ["CREATE TABLE u(id INTEGER PRIMARY KEY, body TEXT NOT NULL DEFAULT '')"], tables: ["u": "t"],
            write: "INSERT INTO u VALUES (2, 'new')", query: "SELECT CAST(n AS TEXT) FROM stat", result: "7"),
        Text(
            testDescription: "a column of a full-text index with the name of the table",
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE fts USING fts4(t);
                CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO fts(docid, t) VALUES (new.id, new.body); END;
                """,
            wanted: ["CREATE TABLE u(id INTEGER PRIMARY KEY, body TEXT NOT NULL DEFAULT '')"], tables: ["u": "t"],
            write: "INSERT INTO u VALUES (2, 'new')", query: "SELECT t FROM fts", result: "new"),
    ]

    @Test(
        "A declared rename affects only what has the name, even beside a broken view",
        .enabled(if: Engine.current.canRenameColumns), arguments: texts, [true, false])
    func renamesExactly(text: Text, hasBrokenView: Bool) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            text.script + (hasBrokenView ? "CREATE VIEW bad AS SELECT * FROM nope" : ""))
        let columns = text.columns.isEmpty ? [:] : ["t": text.columns]
        let source = wanted(text.wanted, tables: text.tables, columns: columns)
        let report = try fixture.launch(source)
        #expect(report.findings.isEmpty)
        try fixture.with { try $0.executeScript(text: text.write) }
        #expect(try fixture.rows(text.query) == ["\(Value.text(text.result))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename of a column does not affect a type of the same name in CAST")
    func keepsTypes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(text TEXT, k, CHECK (typeof(CAST(k AS text)) = 'text')); INSERT INTO t VALUES ('hello', 5);
            """)
        var source = wanted(["CREATE TABLE t(body TEXT NOT NULL DEFAULT '', k)"], columns: ["t": ["body": "text"]])
        source.inherited = ["t": [.constraints]]
        let report = try fixture.launch(source)
        #expect(report.findings.isEmpty)
        try fixture.with { try $0.executeScript("INSERT INTO t VALUES ('a', 7)") }
        #expect(try fixture.rows("SELECT body FROM t").count == 2)
    }

    @Test("A declared rename of a column whose name contains a quote also renames it in the table's indexes")
    func renamesQuotes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t("a""b" TEXT, n TEXT); CREATE INDEX i ON t("a""b"); INSERT INTO t VALUES ('x', 'b'), ('y', 'b');
            """)
        let source = wanted(
            ["CREATE TABLE t(ab TEXT, n TEXT NOT NULL DEFAULT '')"], columns: ["t": ["ab": #"a"b"#]])
        try fixture.launch(source)
        #expect(try fixture.rows("SELECT n FROM t INDEXED BY i WHERE ab = 'x'").count == 1)
        #expect(try fixture.rows("PRAGMA integrity_check") == ["\(Value.text("ok"))"])
    }

    @Test(
        "Engines that cannot rename columns refuse to rename a name in double quotes that may be a string",
        .enabled(if: !Engine.current.canRenameColumns))
    func refusesStrings() throws {
        let text = Self.texts[0]
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), text.script)
        let error = try storeError { try fixture.launch(wanted(text.wanted, columns: ["t": text.columns])) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("the trigger tr contains the name title") == true)
    }
}
