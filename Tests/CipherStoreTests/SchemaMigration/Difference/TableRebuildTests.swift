internal import CipherCatalog
internal import CipherHistory
internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct TableRebuildTests {
    static let script = """
        CREATE TABLE user(id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO user VALUES (1, 'Ann'), (2, 'Bob');
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER REFERENCES user(id) ON DELETE CASCADE,
            uid INTEGER, body TEXT COLLATE NOCASE, answers INTEGER REFERENCES chat(id));
        INSERT INTO chat VALUES (3, 1, 7, 'one', NULL), (4294967296, 2, 8, 'two', 3), (4294967300, 2, 9, 'gone', NULL);
        DELETE FROM chat WHERE id = 4294967300;
        CREATE TABLE message(chat INTEGER NOT NULL REFERENCES chat(id) ON DELETE CASCADE, text TEXT);
        INSERT INTO message VALUES (3, 'a'), (3, 'b'), (4294967296, 'c');
        CREATE TABLE log(what TEXT);
        CREATE INDEX chat_body ON chat(body) WHERE uid > 7;
        CREATE UNIQUE INDEX chat_lower ON chat(lower(body), uid DESC);
        CREATE TRIGGER chat_insert AFTER INSERT ON chat BEGIN INSERT INTO log VALUES ('chat ' || new.body); END;
        CREATE TRIGGER message_insert AFTER INSERT ON message
            BEGIN UPDATE chat SET body = body || '!' WHERE id = new.chat; END;
        CREATE VIEW talk AS SELECT chat.body, message.text FROM chat JOIN message ON message.chat = chat.id;
        CREATE VIEW talkers AS SELECT * FROM talk;
        """

    static let wanted = [
        "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER REFERENCES user(id) ON DELETE CASCADE, "
            + "uid TEXT NOT NULL DEFAULT '', body TEXT COLLATE NOCASE, answers INTEGER REFERENCES chat(id), "
            + "draft TEXT, UNIQUE (uid))"
    ]

    @Test(
        "A rebuilt table loses no row and leaves no dangling reference, trigger or view",
        arguments: MigrationFixture.Form.all, [true, false])
    func keepsEverything(form: MigrationFixture.Form, foreignKeys: Bool) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let schema = try fixture.schema()
        let children = try fixture.rows("SELECT rowid, * FROM message")

        let report = try fixture.launch(WantedSource(statements: Self.wanted), foreignKeys: foreignKeys)

        #expect(report.titles == ["rebuildTable chat"])
        #expect(try fixture.rows("SELECT id, owner, typeof(uid), body, answers FROM chat ORDER BY id").count == 2)
        #expect(
            try fixture.rows("SELECT uid FROM chat WHERE id = 4294967296") == ["\(Value.text("8"))"])
        #expect(try fixture.rows("SELECT rowid, * FROM message") == children)
        #expect(try fixture.rows("SELECT * FROM talkers").count == 3)
        #expect(try fixture.rows("PRAGMA foreign_key_check").isEmpty)
        #expect(try fixture.rows("PRAGMA integrity_check") == ["\(Value.text("ok"))"])
        #expect(
            try fixture.rows("SELECT seq FROM sqlite_sequence WHERE name = 'chat'") == [
                "\(Value.integer(4_294_967_300))"
            ])
        #expect(try fixture.rows("SELECT name FROM sqlite_sequence").count == 1)
        var after = try fixture.schema()
        #expect(after.removeValue(forKey: "chat")?.contains("uid TEXT NOT NULL") == true)
        after["cipherstore_history"] = nil
        var before = schema
        before["chat"] = nil
        #expect(after == before)
        #expect(try fixture.rows("SELECT * FROM log").isEmpty, "no trigger fires while rows are copied")
        try fixture.with { connection in
            try connection.executeScript(
                "INSERT INTO chat(uid, body) VALUES ('x', 'y'); INSERT INTO message VALUES (4294967301, 'd')")
        }
        #expect(try fixture.rows("SELECT body FROM chat WHERE id = 4294967301") == ["\(Value.text("y!"))"])
        #expect(try fixture.launch(WantedSource(statements: Self.wanted)).applied.isEmpty)
    }

    @Test("A rebuilt table has its columns in the same order, and new ones after them")
    func keepsOrder() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE chat(id INTEGER PRIMARY KEY, note TEXT, body TEXT, uid INTEGER); CREATE TABLE trash(i, n, b, u);
            INSERT INTO chat VALUES (1, 'n', 'b', 7);
            CREATE VIEW named(i, n, b, u) AS SELECT * FROM chat;
            CREATE TRIGGER t BEFORE DELETE ON chat BEGIN INSERT INTO trash SELECT * FROM chat WHERE id = old.id; END;
            """)
        let trash = "CREATE TABLE trash(i, n, b, u)"
        let source = WantedSource(statements: ["CREATE TABLE chat(uid TEXT, body TEXT, id INTEGER PRIMARY KEY)", trash])
        #expect(try fixture.launch(source).titles == ["rebuildTable chat"])
        #expect(try fixture.rows("SELECT i || n || b || u FROM named") == ["\(Value.text("1nb7"))"])
        try fixture.with { try $0.execute("DELETE FROM chat") }
        #expect(try fixture.rows("SELECT i || n || b || u FROM trash") == ["\(Value.text("1nb7"))"])
        try fixture.with { try $0.executeScript("DROP VIEW named; DROP TRIGGER t") }
        let added = "CREATE TABLE chat(new TEXT NOT NULL DEFAULT (1), body BLOB, id INTEGER PRIMARY KEY, uid TEXT)"
        #expect(try fixture.launch(WantedSource(statements: [added, trash])).titles == ["rebuildTable chat"])
        let columns = try fixture.with { try ColumnState.read(table: "chat", from: $0).map(\.name) }
        #expect(columns == ["id", "note", "body", "uid", "new"])
    }

    @Test("A rebuilt table restores the settings of the connection", arguments: [true, false])
    func restoresSettings(isOn: Bool) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.script)
        let pragmas = ["foreign_keys", "ignore_check_constraints", "legacy_alter_table"]
        try fixture.with { connection in
            for pragma in pragmas {
                try connection.execute(SQL(text: "PRAGMA \(pragma) = \(isOn ? "ON" : "OFF")"))
            }
            let broken = Plan.Operation(
                .rebuildTable, table: "chat",
                sql: [
                    "PRAGMA legacy_alter_table = ON", "PRAGMA ignore_check_constraints = ON", "SELECT * FROM nosuch",
                ],
                reason: "fails")
            let failure = try storeError {
                try SchemaMigrator(version: 25, source: FixedSource(operations: [broken])).migrate(connection) { 1 }
            }
            #expect(failure?.detail.contains("rebuildTable chat") == true)
            for round in 0...1 {
                for pragma in pragmas {
                    // An engine that does not know the setting has no value to restore.
                    let value = try connection.value(Bool.self, SQL(text: "PRAGMA \(pragma)"))
                    #expect(value == nil || value == isOn, "\(pragma), round \(round)")
                }
                _ = try SchemaMigrator(version: 25, source: WantedSource(statements: Self.wanted))
                    .migrate(connection) { 1 }
            }
        }
    }

    @Test("A rebuilt table keeps the rowids of a table that has no name for them")
    func keepsRowIDs() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: true, journalMode: "WAL"),
            """
            CREATE TABLE a(rowid TEXT, x INTEGER); INSERT INTO a(_rowid_, rowid, x) VALUES (5, 'r', 1), (900, 's', 2);
            CREATE TABLE b(x INTEGER); INSERT INTO b(rowid, x) VALUES (7, 1), (3, 2);
            """)
        let report = try fixture.launch(
            WantedSource(statements: [
                "CREATE TABLE a(rowid TEXT, x TEXT)", "CREATE TABLE b(id INTEGER PRIMARY KEY, x INTEGER)",
            ]))
        #expect(report.titles == ["rebuildTable a", "rebuildTable b"])
        #expect(
            try fixture.rows("SELECT _rowid_ || rowid || x FROM a") == ["5r1", "900s2"].map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT id || ' ' || x FROM b") == ["3 2", "7 1"].map { "\(Value.text($0))" })
    }

    @Test("A rebuilt table can become a WITHOUT ROWID table and an ordinary one again")
    func changesRowIDs() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE a(k TEXT PRIMARY KEY, v BLOB); INSERT INTO a VALUES ('x', x'00ff'), ('y', NULL)")
        let without = WantedSource(statements: ["CREATE TABLE a(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID"])
        let with = WantedSource(statements: ["CREATE TABLE a(k TEXT PRIMARY KEY, v BLOB)"])
        let rows = try fixture.rows("SELECT * FROM a")
        #expect(try fixture.launch(without).titles == ["rebuildTable a"])
        #expect(try fixture.schema()["a"]?.contains("WITHOUT ROWID") == true)
        #expect(try fixture.rows("SELECT * FROM a") == rows)
        #expect(try fixture.launch(with).titles == ["rebuildTable a"])
        #expect(try fixture.rows("SELECT * FROM a") == rows)
    }

    @Test("A rebuilt table keeps STRICT and generated columns", .enabled(if: Engine.current.hasStrictTables))
    func keepsModernTables() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: true, journalMode: "DELETE"),
            """
            CREATE TABLE a(id INTEGER PRIMARY KEY, n INTEGER, twice INTEGER AS (n * 2) STORED, thrice INTEGER AS (n * 3))
                STRICT;
            INSERT INTO a(id, n) VALUES (4, 5); CREATE INDEX a_thrice ON a(thrice);
            """)
        let wanted = WantedSource(statements: [
            "CREATE TABLE a(id INTEGER PRIMARY KEY, n REAL, twice INTEGER AS (n * 2) STORED, thrice INTEGER AS (n * 3)) "
                + "STRICT"
        ])
        #expect(try fixture.launch(wanted).titles == ["rebuildTable a"])
        #expect(
            try fixture.rows("SELECT typeof(n), twice, thrice FROM a") == [
                "\(Value.text("real"))|\(Value.integer(10))|\(Value.integer(15))"
            ])
        #expect(try fixture.schema()["a"]?.hasSuffix("STRICT") == true)
        #expect(try fixture.schema()["a_thrice"] != nil)
    }

    @Test(
        "A rebuild that would make rows violate an unchanged CHECK is refused",
        arguments: [
            ("CREATE TABLE t(a TEXT CHECK (a <> 'z'))", "CREATE TABLE t(a TEXT NOT NULL DEFAULT 'z' CHECK (a <> 'z'))"),
            ("CREATE TABLE t(a TEXT CHECK (a <> 'X'))", "CREATE TABLE t(a TEXT COLLATE NOCASE CHECK (a <> 'X'))"),
        ])
    func refusesViolation(present: String, wanted: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "\(present); INSERT INTO t VALUES (NULL), ('x')")
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(WantedSource(statements: [wanted])) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("1 row of t would violate CHECK") == true, "\(error?.detail ?? "")")
        #expect(try fixture.bytes() == before)
    }

    static let violations =
        [("\"true\" INTEGER CHECK (\"true\" < 5)", "\"true\" INTEGER NOT NULL DEFAULT 5 CHECK (\"true\" < 5)")]
        + (Engine.current.hasGeneratedColumns
            ? [("a INT, \(generated)", "a INT NOT NULL DEFAULT 0, \(generated)")] : [])
    private static let generated = "g INT AS (a + 1), h INT AS (g * 2) CHECK (h <> 2)"

    @Test("A rebuild that is the first to show that a row would violate a CHECK changes nothing", arguments: violations)
    func undoesViolation(present: String, wanted: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(\(present)); INSERT INTO t DEFAULT VALUES"
        )
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(WantedSource(statements: ["CREATE TABLE t(\(wanted))"])) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("failed during rebuildTable t") == true)
        #expect(try fixture.bytes() == before)
    }

    @Test("A rebuilt table keeps rows that violated a CHECK before")
    func keepsBrokenChecks() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE a(x INTEGER CHECK (x > 3), y INTEGER); PRAGMA ignore_check_constraints = ON;
            INSERT INTO a VALUES (1, 1);
            """)
        try fixture.launch(WantedSource(statements: ["CREATE TABLE a(x INTEGER CHECK (x > 3), y TEXT)"]))
        #expect(try fixture.rows("SELECT count(*) FROM a") == ["\(Value.integer(1))"])
        #expect(throws: DatabaseError.self) {
            try fixture.with { try $0.execute("INSERT INTO a VALUES (1, 1)") }
        }
    }

    @Test("A rebuilt table uses a temporary name that is free in the database")
    func findsFreeName() throws {
        let taken =
            "CREATE TABLE cipherstore_new_a(z); CREATE TABLE other(z); CREATE INDEX CIPHERSTORE_NEW_A_2 ON other(z)"
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE a(x); INSERT INTO a VALUES ('x'); \(taken)")
        let report = try fixture.launch(WantedSource(statements: ["CREATE TABLE a(x TEXT UNIQUE)"]))
        #expect(report.titles == ["rebuildTable a"])
        #expect(try fixture.schema()["cipherstore_new_a"] == "CREATE TABLE cipherstore_new_a(z)")
        #expect(try fixture.rows("SELECT x FROM a").count == 1)
    }

    @Test("A rebuilt table is refused if a constraint would drop rows")
    func countsRows() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE a(x, y INTEGER); INSERT INTO a VALUES (1, 1), (1, 2)")
        let before = try fixture.bytes()
        let error = try storeError {
            try fixture.launch(WantedSource(statements: ["CREATE TABLE a(x UNIQUE ON CONFLICT IGNORE, y INTEGER)"]))
        }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("a(x) must be unique, but 1 value occurs") == true)
        #expect(try fixture.bytes() == before)
        let swallowing = FixedSource(operations: [
            Plan.Operation(.rebuildTable, table: "a", sql: ["DELETE FROM a WHERE y = 2"], reason: "loses one")
        ])
        let counted = try storeError {
            try fixture.with { try SchemaMigrator(version: 25, source: swallowing).migrate($0) { 1 } }
        }
        #expect(counted?.detail == "rebuildTable a would change the number of rows from 2 to 1")
        #expect(try fixture.bytes() == before)
    }

    @Test("A rebuilt table is rolled back if it would break a working view or trigger")
    func breaksNothing() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE a(x); CREATE VIEW works AS SELECT x FROM a; CREATE VIEW dangles AS SELECT * FROM gone;
            CREATE VIEW sorted AS SELECT x FROM a ORDER BY x COLLATE nosuch;
            CREATE TRIGGER far INSTEAD OF DELETE ON dangles BEGIN SELECT 1; END;
            CREATE TABLE b(y); CREATE TRIGGER t AFTER DELETE ON b BEGIN DELETE FROM a WHERE x = old.y; END;
            """)
        let before = try fixture.content()
        for sql in ["CREATE TABLE tmp(z)", "DROP TABLE a"] {
            let source = FixedSource(operations: [Plan.Operation(.sql, object: "step", sql: [sql], reason: "test")])
            let error = try storeError {
                try fixture.with { try SchemaMigrator(version: 25, source: source).migrate($0) { 1 } }
            }
            #expect(error?.detail.contains("would break the") == sql.contains("DROP"))
        }
        #expect(try fixture.content() == before)
    }

    @Test("A table whose CHECK qualifies a column with the table's name can be rebuilt", arguments: [true, false])
    func rebuildsQualifiedChecks(isDeclared: Bool) throws {
        let check = "CHECK (t.a > 0 AND \"t\".a < 9)"
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a INTEGER \(check), old TEXT \(isDeclared ? "" : check)); INSERT INTO t VALUES (1, 'x')")
        let source = WantedSource(
            statements: ["CREATE TABLE t(a INTEGER NOT NULL DEFAULT 1 \(isDeclared ? check : ""))"])
        #expect(try fixture.launch(source).titles == ["rebuildTable t"])
        #expect(try fixture.rows("SELECT a, old FROM t") == ["\(Value.integer(1))|\(Value.text("x"))"])
        try fixture.with { connection in
            try connection.executeScript("INSERT INTO t(a) VALUES (2)")
            #expect(throws: DatabaseError.self) { try connection.executeScript("INSERT INTO t(a) VALUES (9)") }
        }
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A rebuild reports rows that a new constraint with a conflict clause would omit or replace",
        arguments: ["REPLACE", "IGNORE"])
    func keepsRowsDespiteConflictClauses(action: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('x')")
        let source = WantedSource(statements: [
            "CREATE TABLE t(a TEXT, b TEXT DEFAULT 'k', UNIQUE (a, b) ON CONFLICT \(action))"
        ])
        let error = try storeError { try fixture.launch(source) }
        #expect(error?.underlying?.message.contains("UNIQUE constraint failed") == true)
        #expect(error?.advice.hasPrefix("correct the schema or the rows") == true)
        #expect(try fixture.rows("SELECT a FROM t").count == 2)
    }
}
