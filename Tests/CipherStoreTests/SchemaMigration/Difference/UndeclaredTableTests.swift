internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct UndeclaredTableTests {
    static let script = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY);
        CREATE TABLE draft(body TEXT);
        INSERT INTO draft VALUES ('a'), ('b'), ('c');
        CREATE INDEX draft_body ON draft(body);
        CREATE TABLE hollow(x);
        """

    private func configuration(
        _ destructiveChanges: DestructiveChanges, version: SchemaVersion = 25,
        recordedVersion: RecordedVersion = .userVersion, extra: String? = nil
    ) -> Configuration {
        .declaring(
            extra.map { ["chat": ["id": "INTEGER PRIMARY KEY", "other": $0]] } ?? [
                "chat": ["id": "INTEGER PRIMARY KEY"]
            ],
            version: version, recordedVersion: recordedVersion,
            destructiveChanges: destructiveChanges)
    }

    @Test(
        "An undeclared table is kept with its rows, which are counted, by default",
        arguments: MigrationFixture.Form.all)
    func keeps(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let report = try fixture.launch(configuration(.withhold))
        #expect(report.applied.map(\.kind) == [.stamp])
        #expect(report.withheld.map(\.table) == ["draft", "hollow"])
        #expect(report.withheld.map(\.rows) == [3, 0])
        #expect(try fixture.with { try $0.value(Int.self, "SELECT count(*) FROM draft") } == 3)
    }

    @Test(
        "An undeclared table is dropped if the configuration allows it, and the plan states what is lost",
        arguments: MigrationFixture.Form.all)
    func drops(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let report = try fixture.launch(configuration(.allow))
        #expect(report.applied.map(\.table) == ["draft", "hollow", nil])
        #expect(report.applied.map(\.risk) == [.losesData, .removesSchema, .none])
        #expect(report.applied[0].reason.contains("3 rows"))
        #expect(report.withheld.isEmpty)
        let left = try fixture.with { try $0.values(String.self, "SELECT name FROM sqlite_master ORDER BY name") }
        #expect(left == ["chat", "cipherstore_history"])
    }

    struct Kept: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        /// The definition of another declared column.
        var extra: String?
        var withheld: [String]
        var dropped: [String] = []
    }

    static let kept = [
        Kept(
            testDescription: "a virtual table and its shadow tables",
            script: "CREATE VIRTUAL TABLE search USING fts4(body); INSERT INTO search VALUES ('x')",
            withheld: ["search"]),
        Kept(
            testDescription: "referred to by a foreign key of a table that stays",
            script:
                "CREATE TABLE chat(id INTEGER PRIMARY KEY, other REFERENCES User(id)); CREATE TABLE user(id PRIMARY KEY)",
            extra: "REFERENCES User(id)",
            withheld: ["user"]),
        Kept(
            testDescription: "referred to by one that is kept itself",
            script: """
                CREATE TABLE a(id PRIMARY KEY); CREATE TABLE b(id PRIMARY KEY, a REFERENCES a(id));
                CREATE TABLE chat(id INTEGER PRIMARY KEY, other REFERENCES b(id));
                """,
            extra: "REFERENCES b(id)",
            withheld: ["b", "a"]),
        Kept(
            testDescription: "tables that refer to each other go together",
            script: """
                CREATE TABLE a(id PRIMARY KEY, b REFERENCES b(id)); CREATE TABLE b(id PRIMARY KEY, a REFERENCES a(id));
                INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1);
                """,
            withheld: [], dropped: ["a", "b"]),
        Kept(
            testDescription: "mentioned by a view",
            script: "CREATE TABLE a(x); CREATE VIEW v AS SELECT * FROM \"A\"", withheld: ["a"]),
        Kept(
            testDescription: "the rows of a full-text index, which names a column of another table too",
            script: """
                CREATE TABLE doc(body); INSERT INTO doc VALUES ('x'); CREATE TABLE chat(id INTEGER PRIMARY KEY, other);
                CREATE VIRTUAL TABLE search USING fts4(content="doc", body);
                """,
            extra: "TEXT", withheld: ["search", "doc"]),
        Kept(
            testDescription: "mentioned by a trigger of a table that stays",
            script: """
                CREATE TABLE chat(id INTEGER PRIMARY KEY); CREATE TABLE log(x); CREATE TABLE logs(x);
                CREATE TRIGGER t AFTER INSERT ON chat BEGIN INSERT INTO log VALUES (1); END;
                """,
            withheld: ["log"], dropped: ["logs"]),
        Kept(
            testDescription: "mentioned only by its own trigger",
            script: "CREATE TABLE a(x); CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END",
            withheld: [], dropped: ["a"]),
        Kept(
            testDescription: "the app's own version record",
            script: "CREATE TABLE DB_Version(n); INSERT INTO db_version VALUES (4)", withheld: ["DB_Version"]),
    ]

    @Test(
        "An undeclared table is kept under every policy if a remaining object needs it", arguments: kept)
    func keepsWhatIsNeeded(kept: Kept) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "DELETE"), kept.script)
        let tables = try fixture.with {
            try $0.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        let wanted = configuration(
            .allow, recordedVersion: .table(.init(table: "db_version", column: "n")), extra: kept.extra)
        let report = try fixture.launch(wanted, recorded: 3)
        #expect(report.withheld.filter { $0.kind == .dropTable }.map(\.table) == kept.withheld)
        #expect(report.applied.filter { $0.kind == .dropTable }.map(\.table) == kept.dropped)
        let left = try fixture.with {
            try $0.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        #expect(Set(tables).subtracting(left) == Set(kept.dropped))
        #expect(try fixture.launch(wanted).applied.isEmpty)
    }

    @Test("An undeclared table keeps rows of other tables that refer to it, with foreign keys on before and after")
    func keepsChildRows() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE chat(id INTEGER PRIMARY KEY); INSERT INTO chat VALUES (1);
            CREATE TABLE draft(chat REFERENCES chat(id) ON DELETE CASCADE); INSERT INTO draft VALUES (1);
            """)
        try fixture.with { connection in
            try connection.execute("PRAGMA foreign_keys = ON")
            _ = try SchemaMigrator(configuration: configuration(.allow)).migrate(connection) { nil }
            #expect(try connection.value(Bool.self, "PRAGMA foreign_keys") == true)
            #expect(try connection.value(Int.self, "SELECT count(*) FROM chat") == 1)
        }
    }

    static let users = [
        (
            "CREATE TABLE post(id INTEGER PRIMARY KEY, n INT)",
            """
            CREATE TABLE comment(post INT);
            CREATE TRIGGER counter AFTER INSERT ON comment BEGIN UPDATE post SET n = n + 1 WHERE id = new.post; END;
            """, ["comment"]
        ),
        (
            "CREATE TABLE post(id INTEGER PRIMARY KEY, n TEXT UNIQUE)",
            "CREATE TABLE comment(post TEXT REFERENCES post(n))", ["comment"]
        ),
        (
            "CREATE TABLE post(id INTEGER PRIMARY KEY, n INT REFERENCES author(id))",
            """
            CREATE TABLE author(id INTEGER PRIMARY KEY); CREATE TABLE comment(id INTEGER PRIMARY KEY);
            CREATE TRIGGER counter AFTER INSERT ON comment BEGIN UPDATE post SET n = n + 1; END;
            """, ["author", "comment"]
        ),
    ]

    @Test(
        "A table dropped in the same migration does not keep the column that its trigger or foreign key needs",
        arguments: users)
    func dropsUserWithColumn(table: String, script: String, dropped: [String]) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "\(table); INSERT INTO post VALUES (1, NULL); \(script)")
        let source = WantedSource(statements: ["CREATE TABLE post(id INTEGER PRIMARY KEY)"], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable post"] + dropped.map { "dropTable \($0)" })
        #expect(report.withheld.isEmpty)
        #expect(try fixture.rows("SELECT * FROM post") == ["\(Value.integer(1))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
