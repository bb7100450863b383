internal import CipherCatalog
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct DeclaredTablesTests {
    static let wanted = Configuration.declaring([
        "chat": [
            "id": "INTEGER PRIMARY KEY AUTOINCREMENT", "uid": "TEXT", "body": "BLOB",
            "read": "INTEGER NOT NULL DEFAULT 0",
        ],
        "user": ["uid": "TEXT PRIMARY KEY", "name": "TEXT"],
    ])

    struct Shape: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        var operations: [String]
        var event: HistoryEvent = .adopted
    }

    static let shapes = [
        Shape(
            testDescription: "nothing", script: "",
            operations: ["createTable chat", "createTable user", "stamp "], event: .created),
        Shape(
            testDescription: "one table of two",
            script: """
                CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, body BLOB,
                    read INTEGER NOT NULL DEFAULT 0);
                INSERT INTO chat(id, uid, body) VALUES (7, 'a', x'00ff');
                """,
            operations: ["createTable user", "stamp "]),
        Shape(
            testDescription: "columns missing in the middle and at the end",
            script: """
                CREATE TABLE CHAT(ID INTEGER PRIMARY KEY AUTOINCREMENT, Body BLOB);
                INSERT INTO chat VALUES (4294967296, x'00ff'), (9, NULL);
                CREATE TABLE user(uid TEXT PRIMARY KEY, name TEXT);
                INSERT INTO user VALUES ('a', 'Ann');
                """,
            operations: ["addColumn CHAT.uid", "addColumn CHAT.read", "stamp "]),
        Shape(
            testDescription: "everything there already",
            script: """
                CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, body BLOB,
                    read INTEGER NOT NULL DEFAULT 0);
                CREATE TABLE user(uid TEXT PRIMARY KEY, name TEXT);
                """,
            operations: ["stamp "]),
    ]

    private func names(_ operations: [Plan.Operation]) -> [String] {
        operations.map { "\($0.kind.rawValue) \([$0.table, $0.column].compactMap { $0 }.joined(separator: "."))" }
    }

    @Test(
        "Declared tables are created from each older schema, encrypted or not, in both journal modes",
        arguments: shapes,
        MigrationFixture.Form.all)
    func reachesSchema(shape: Shape, form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, shape.script)
        let before = try fixture.content().filter { $0.hasPrefix("chat: ") || $0.hasPrefix("user: ") }.count

        let report = try fixture.launch(Self.wanted, recorded: shape.script.isEmpty ? nil : 23)

        #expect(names(report.applied) == shape.operations)
        #expect(report.event == shape.event)
        #expect(report.isUpdate == (shape.event == .adopted))
        #expect(report.to == 25)
        #expect(try fixture.content().first == "user_version 25")
        #expect(try fixture.content().filter { $0.hasPrefix("chat: ") || $0.hasPrefix("user: ") }.count == before)
        let mode = try fixture.with { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(mode == form.journalMode.lowercased())
        let columns = try fixture.with { try ColumnState.read(table: "chat", from: $0).map { SQLName($0.name) } }
        #expect(Set(columns) == Set(["id", "uid", "body", "read"].map(SQLName.init)))
    }

    @Test("Declared tables keep the values of rows when columns are appended")
    func keepsRows() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), Self.shapes[2].script)
        try fixture.launch(Self.wanted, recorded: 23)
        let content = try fixture.content()
        #expect(
            content.contains(
                "CHAT: \(Value.integer(4_294_967_296)), \(Value.blob([0, 255])), \(Value.null), \(Value.integer(0))"))
        #expect(content.contains("CHAT: \(Value.integer(9)), \(Value.null), \(Value.null), \(Value.integer(0))"))
    }

    @Test("Declared tables are planned on a read-only connection without changing a byte")
    func plansWithoutSideEffects() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "DELETE"), Self.shapes[2].script)
        let before = try fixture.bytes()
        let plan = try fixture.with(.readOnly) { try SchemaMigrator(configuration: Self.wanted).plan($0, recorded: 23) }
        #expect(names(plan.operations) == Self.shapes[2].operations)
        #expect(plan.from == 23)
        #expect(plan.operations.allSatisfy { $0.risk == .none && !$0.reason.isEmpty && !$0.sql.isEmpty })
        #expect(plan.operations[0].sql == [#"ALTER TABLE "CHAT" ADD COLUMN "uid" TEXT"#])
        #expect(try fixture.bytes() == before)
    }

    @Test("Declared tables change differing definitions, and withhold the drop of undeclared columns")
    func notesDifferences() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER, body blob, read INTEGER NOT NULL DEFAULT 0,
                draft TEXT);
            INSERT INTO chat(uid, draft) VALUES (1, 'kept');
            CREATE TABLE user(uid TEXT PRIMARY KEY, name TEXT);
            """)
        let report = try fixture.launch(Self.wanted)
        #expect(names(report.applied) == ["rebuildTable chat", "stamp "])
        #expect(
            report.applied[0].reason
                == "the column uid is declared as TEXT in the schema, but as INTEGER in the database")
        #expect(report.withheld.map(\.kind) == [.dropColumn])
        #expect(report.withheld.map(\.column) == ["draft"])
        #expect(report.withheld[0].reason == "the column is not in the schema; it contains 1 value")
        #expect(try fixture.with { try $0.value(String.self, "SELECT typeof(uid) || draft FROM chat") } == "textkept")
        #expect(try fixture.launch(Self.wanted).applied.isEmpty)
    }

    @Test("Declared tables accept names with quotes, spaces, reserved words and other scripts")
    func takesHostileNames() throws {
        let names = [
            "sel\"ect", "it's", "a b", "order", "[x]", "`y`", "日本", "é", "a;b", "--", "/*", "%s", "x)", "🔒",
            "index", "a.b", "\\", "\t", "e\u{301}", "q\"\u{301}",
        ]
        let tables = names.map { name in
            DeclaredTable(name: name, columns: names.map { .init(name: $0, definition: "TEXT DEFAULT ''") })
        }
        var older = tables
        for index in older.indices { older[index].columns.removeLast(4) }
        func configuration(_ tables: [DeclaredTable], _ version: SchemaVersion) -> Configuration {
            Configuration(databaseName: "app.db", version: version, schema: .tables(tables), destructiveChanges: .allow)
        }
        let fixture = try MigrationFixture()
        try fixture.launch(configuration(older, 1))
        let report = try fixture.launch(configuration(tables, 2))
        #expect(report.applied.filter { $0.kind == .addColumn }.count == 4 * names.count)
        let last = try fixture.launch(configuration([tables[0]], 3))
        #expect(last.applied.filter { $0.kind == .dropTable }.count == names.count - 1)
        let left = try fixture.with {
            try $0.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        }
        #expect(left.map(SQLName.init) == [SQLName("sel\"ect"), SQLName(HistoryTable.name)])
    }

    @Test("Declared tables can use collations from the configuration")
    func knowsCollations() throws {
        let backwards = Collation(name: "backwards") { left, right in
            right.lexicographicallyPrecedes(left) ? -1 : left.lexicographicallyPrecedes(right) ? 1 : 0
        }
        let configuration = Configuration.declaring(
            ["a": ["x": "TEXT COLLATE backwards"]], collations: [backwards])
        let fixture = try MigrationFixture()
        let report = try fixture.with { connection in
            try connection.register(backwards)
            return try SchemaMigrator(configuration: configuration).migrate(connection) { nil }
        }
        #expect(report.event == .created)
    }
}
