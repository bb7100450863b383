internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct RenameCollisionTests {
    private func fixture(_ script: String) throws -> MigrationFixture {
        try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
    }

    private func source(
        _ statements: [String], tables: [String: String] = [:], columns: [String: String] = [:],
        _ policy: DestructiveChanges
    ) -> WantedSource {
        var source = WantedSource(statements: statements, policy: policy)
        for (new, old) in tables { source.renames.tables[SQLName(new)] = old }
        for (new, old) in columns { source.renames.columns[SQLName("t"), default: [:]][SQLName(new)] = old }
        return source
    }

    private static let tables = ["CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)"]

    @Test(
        "A declared rename moves the rows of the old table if both tables exist and the new one is empty",
        arguments: DestructiveChanges.allCases)
    func movesRows(policy: DestructiveChanges) throws {
        let fixture = try fixture(
            """
            \(Self.tables[0]); CREATE INDEX chat_body ON chat(body);
            CREATE TABLE message(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT);
            INSERT INTO message VALUES (7, 'one'), (9, 'two'), (11, 'gone'); DELETE FROM message WHERE id = 11;
            CREATE TABLE tag(chat REFERENCES chat(id), message REFERENCES message(id)); INSERT INTO tag VALUES (7, 9);
            CREATE VIEW bodies AS SELECT chat.body FROM chat;
            CREATE TRIGGER tag_insert AFTER INSERT ON tag BEGIN UPDATE chat SET body = 'tagged' WHERE id = new.chat; END;
            """)
        let source = source(
            Self.tables + [
                "CREATE INDEX chat_body ON chat(body)",
                "CREATE TABLE tag(chat REFERENCES chat(id), message REFERENCES chat(id))",
            ], tables: ["chat": "message"], policy)
        let report = try fixture.launch(source)
        #expect(report.findings.isEmpty)
        #expect(report.withheld.isEmpty)
        #expect(report.notes == ["the empty table chat is replaced with message"])
        #expect(try fixture.rows("SELECT id || body FROM chat") == ["7one", "9two"].map { "\(Value.text($0))" })
        #expect(try fixture.rows("SELECT seq FROM sqlite_sequence") == ["\(Value.integer(11))"])
        #expect(try fixture.schema()["message"] == nil)
        #expect(try fixture.schema()["chat_body"] != nil)
        #expect(try fixture.rows("PRAGMA foreign_key_check").isEmpty)
        try fixture.with { try $0.executeScript("INSERT INTO tag VALUES (9, 9)") }
        #expect(try fixture.rows("SELECT body FROM bodies") == ["one", "tagged"].map { "\(Value.text($0))" })
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    struct UsedKeys: Sendable, CustomTestStringConvertible {
        /// The largest key that was used in the empty table; the other table has the key 11.
        var largest: Int
        var message = "AUTOINCREMENT"
        var script = ""
        var testDescription: String { "\(largest) \(message) \(script)" }
    }

    static let usedKeys =
        [5, 11, 500].map { UsedKeys(largest: $0) } + [5, 500].map { UsedKeys(largest: $0, message: "") } + [
            UsedKeys(largest: 500, script: "DELETE FROM sqlite_sequence WHERE name = 'message'"),
            UsedKeys(largest: 5, script: "DELETE FROM sqlite_sequence WHERE name = 'chat'"),
        ]

    @Test(
        "A declared rename that replaces an empty table never makes used keys of either table available again",
        arguments: usedKeys, ["", "NOT NULL"])
    func keepsSequences(old: UsedKeys, constraint: String) throws {
        let fixture = try fixture(
            """
            \(Self.tables[0]); INSERT INTO chat VALUES (\(old.largest), 'gone'); DELETE FROM chat;
            CREATE TABLE message(id INTEGER PRIMARY KEY \(old.message), body TEXT); INSERT INTO message VALUES (11, 'one');
            \(old.script);
            """)
        let wanted = "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT \(constraint))"
        let report = try fixture.launch(source([wanted], tables: ["chat": "message"], .refuse))
        #expect(report.notes == ["the empty table chat is replaced with message"])
        let sequence = Value.integer(Int64(max(old.largest, 11)))
        #expect(try fixture.rows("SELECT name, seq FROM sqlite_sequence") == ["\(Value.text("chat"))|\(sequence)"])
    }

    static let keptTables = [
        "INSERT INTO chat VALUES (1, 'mine')",
        "CREATE TRIGGER own AFTER INSERT ON chat BEGIN SELECT 1; END",
    ]

    @Test(
        "A declared rename keeps both tables and reports this if the new one has content of its own",
        arguments: keptTables,
        DestructiveChanges.allCases)
    func keepsTables(script: String, policy: DestructiveChanges) throws {
        let fixture = try fixture(
            "\(Self.tables[0]); CREATE TABLE message(id, body); INSERT INTO message VALUES (7, 'one'); \(script)")
        let source = source(Self.tables, tables: ["chat": "message"], policy)
        let report = try fixture.launch(source)
        #expect(report.titles.isEmpty)
        #expect(report.withheld.map(\.kind) == [.dropTable])
        #expect(report.withheld.first?.table == "message")
        #expect(report.withheld.first?.rows == 1)
        #expect(report.withheld.first?.reason.contains("it cannot be renamed to chat, ") == true)
        #expect(try fixture.rows("SELECT body FROM message").count == 1)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename is treated as done if another table now has its old name, even if the new table is empty")
    func keepsChains() throws {
        let script = "CREATE TABLE b(x); CREATE TABLE c(x); INSERT INTO b VALUES (1)"
        let fixture = try fixture(script)
        let source = source(
            ["b", "c"].map { "CREATE TABLE \($0)(x)" }, tables: ["c": "b", "b": "a"], .allow)
        #expect(try fixture.launch(source).titles.isEmpty)
        #expect(try fixture.rows("SELECT x FROM b").count == 1)
    }

    @Test(
        "A declared rename takes the values of the old column if both columns exist and the new one is empty",
        arguments: DestructiveChanges.allCases)
    func takesValues(policy: DestructiveChanges) throws {
        let fixture = try fixture(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT CHECK (a <> ''), b TEXT, c TEXT);
            INSERT INTO t VALUES (1, 'one', NULL, 'x'), (5, 'five', NULL, NULL), (6, NULL, NULL, NULL);
            CREATE INDEX t_a ON t(a);
            """)
        let source = source(
            ["CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT CHECK (b <> ''), d TEXT)"], columns: ["b": "a", "d": "c"],
            policy)
        let report = try fixture.launch(source)
        #expect(report.titles.contains("rebuildTable t"))
        #expect(report.withheld.isEmpty)
        #expect(report.findings.isEmpty)
        #expect(
            try fixture.rows("SELECT id || coalesce(b, '-') || coalesce(d, '-') FROM t")
                == ["1onex", "5five-", "6--"].map { "\(Value.text($0))" })
        #expect(try fixture.with { try ColumnState.read(table: "t", from: $0).map(\.name) } == ["id", "b", "d"])
        #expect(try fixture.schema()["t_a"]?.contains("b") == true)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let keptColumns = ["UPDATE t SET b = 'mine'", "CREATE VIEW v AS SELECT a FROM t"]

    @Test(
        "A declared rename keeps the old column, and reports it, if the new one has values or a view needs it",
        arguments: keptColumns, DestructiveChanges.allCases)
    func keepsColumns(script: String, policy: DestructiveChanges) throws {
        let fixture = try fixture("CREATE TABLE t(a TEXT, b TEXT); INSERT INTO t VALUES ('one', NULL); \(script)")
        let source = source(["CREATE TABLE t(b TEXT)"], columns: ["b": "a"], policy)
        let report = try fixture.launch(source)
        #expect(report.titles.isEmpty)
        #expect(report.withheld.map(\.column) == ["a"])
        #expect(report.withheld.first?.rows == 1)
        #expect(report.withheld.first?.reason.contains("it cannot be renamed to b") == true)
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.text("one"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A declared rename names the constraints of the empty table or column that it replaces")
    func namesLosses() throws {
        let constraints = "b TEXT UNIQUE CHECK (b <> '')"
        let column = try fixture("CREATE TABLE t(a TEXT, \(constraints)); INSERT INTO t VALUES ('one', NULL)")
        let table = try fixture("CREATE TABLE t(\(constraints)); CREATE TABLE u(b TEXT); INSERT INTO u VALUES ('one')")
        let wanted = "CREATE TABLE t(b TEXT)"
        let cases: [(MigrationFixture, [String: String], [String: String])] = [
            (column, [:], ["b": "a"]), (table, ["t": "u"], [:]),
        ]
        for (fixture, tables, columns) in cases {
            let refused = source([wanted], tables: tables, columns: columns, .refuse)
            let error = try storeError { try fixture.launch(refused) }
            #expect(error?.code == .destructiveChanges)
            for lost in ["UNIQUE (b)", "CHECK (b <> '')"] {
                #expect(error?.detail.contains("the migration removes \(lost) from t") == true)
            }
            let report = try fixture.launch(source([wanted], tables: tables, columns: columns, .withhold))
            #expect(report.findings.contains { $0.message == "the migration removes UNIQUE (b) from t" })
            #expect(try fixture.rows("SELECT b FROM t") == ["\(Value.text("one"))"])
        }
    }

    @Test(
        "A declared rename keeps both columns if a remaining CHECK or unique index names both",
        arguments: [
            "CREATE TABLE t(a BLOB CHECK (a <> b), b TEXT, c TEXT)",
            "CREATE TABLE t(a TEXT, b TEXT, c TEXT); CREATE UNIQUE INDEX i ON t(a, b)",
            "CREATE TABLE t(a TEXT, b TEXT, c TEXT CHECK (a IS NOT b))",
        ])
    func keepsColumnsOfOneKey(script: String) throws {
        let fixture = try fixture("\(script); INSERT INTO t VALUES ('one', NULL, NULL), ('one', NULL, NULL)")
        let source = source(["CREATE TABLE t(b TEXT)"], columns: ["b": "a"], .withhold)
        let report = try fixture.launch(source)
        #expect(report.withheld.map(\.column) == ["a", "c"])
        #expect(report.withheld.first?.reason.contains("it cannot be renamed to b") == true)
        #expect(try fixture.rows("SELECT a FROM t").count == 2)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A declared rename keeps both columns if a definition that names both may stay",
        arguments: [
            (
                "CREATE TABLE t(k TEXT, a TEXT, b TEXT, c TEXT CHECK (a IS NOT b))",
                "CREATE TABLE t(k TEXT, b TEXT, c INTEGER CHECK (b <> ''))"
            ),
            (
                "CREATE TABLE t(k TEXT, a TEXT CHECK (a IS NOT b), b TEXT, c TEXT PRIMARY KEY)",
                "CREATE TABLE t(k TEXT, b TEXT, c INTEGER, PRIMARY KEY (c, b))"
            ),
        ])
    func keepsColumnsOfKeptDefinition(script: String, wanted: String) throws {
        let fixture = try fixture("\(script); INSERT INTO t VALUES ('x', 'one', NULL, '007')")
        let source = source([wanted], columns: ["b": "a"], .withhold)
        let report = try fixture.launch(source)
        let kept = report.withheld.first { $0.column == "a" }
        #expect(kept?.reason.contains("it cannot be renamed to b") == true)
        try fixture.with { try $0.executeScript("INSERT INTO t(k, b, c) VALUES ('y', 'two', '008')") }
        #expect(try fixture.rows("SELECT c FROM t") == ["007", "008"].map { "\(Value.text($0))" })
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A trigger that refers to a renamed or replaced table is dropped with its own undeclared table",
        arguments: [
            "CREATE TABLE t(b TEXT); CREATE TRIGGER clear BEFORE DELETE ON seen BEGIN DELETE FROM t; END",
            """
            CREATE TRIGGER clear BEFORE DELETE ON seen BEGIN DELETE FROM u; END;
            CREATE VIEW broken AS SELECT * FROM missing
            """,
        ])
    func dropsTriggerOfDroppedTable(script: String) throws {
        let fixture = try fixture(
            "CREATE TABLE u(b TEXT); INSERT INTO u VALUES ('one'); CREATE TABLE seen(x); \(script)")
        let source = source(["CREATE TABLE t(b TEXT)"], tables: ["t": "u"], .allow)
        try fixture.launch(source)
        #expect(try fixture.rows("SELECT b FROM t") == ["\(Value.text("one"))"])
        #expect(try ["u", "seen", "clear"].allSatisfy { try fixture.schema()[$0] == nil })
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A declared rename removes the constraint or unique index that names both columns, and names it",
        arguments: [
            "CREATE TABLE t(a TEXT, b TEXT, UNIQUE (b, a), CHECK (a IS NOT NULL OR b IS NOT NULL))",
            "CREATE TABLE t(a TEXT, b TEXT, UNIQUE (a, b))", "CREATE TABLE t(a TEXT CHECK (a <> b), b TEXT)",
            "CREATE TABLE t(a TEXT, b TEXT); CREATE UNIQUE INDEX i ON t(a, b)",
        ], DestructiveChanges.allCases)
    func movesValuesOfRemovedKey(script: String, policy: DestructiveChanges) throws {
        let fixture = try fixture("\(script); INSERT INTO t VALUES ('one', NULL), ('one', NULL)")
        var source = source(
            ["CREATE TABLE t(b TEXT NOT NULL)", "CREATE INDEX i ON t(b)"], columns: ["b": "a"], policy)
        source.inherited["t"] = [.constraints]
        guard policy != .refuse else {
            #expect(try storeError { try fixture.launch(source) }?.code == .destructiveChanges)
            return
        }
        let report = try fixture.launch(source)
        #expect(report.withheld.isEmpty)
        #expect(report.findings.contains { $0.severity == .removesSchema })
        #expect(try fixture.rows("SELECT b FROM t") == ["one", "one"].map { "\(Value.text($0))" })
        try fixture.with { try $0.executeScript("INSERT INTO t VALUES ('one')") }
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
