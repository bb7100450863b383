internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct StepErrorTests {
    private static let files = [
        "sql_default.plist": #"["CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT DEFAULT 'x;y')"]"#,
        "sql_update_2.plist": #"["ALTER TABLE t ADD COLUMN a TEXT"]"#,
        "sql_update_3.plist": #"["ALTER TABLE t ADD COLUMN b TEXT"]"#,
    ]

    // MARK: Files

    @Test(
        "Steps that are unusable are named when the configuration is read",
        arguments: [
            ("sql_update_2.plist", nil, "sql_update_2.plist, the update to version 2, is missing"),
            ("sql_update_3.plist", nil, "sql_update_3.plist, the update to version 3, is missing"),
            ("sql_default.plist", nil, "the file with the SQL statements is missing"),
            ("sql_update_3.plist", #"{"a": "b"}"#, "sql_update_3.plist must be a list, not a dictionary"),
            ("sql_update_3.plist", #"["SELECT 1", 5]"#, "sql_update_3.plist[1] must be text, not a whole number"),
            ("sql_update_3.plist", #"["SELECT 1\u0000"]"#, "sql_update_3.plist[0] contains a NUL character"),
            ("sql_update_3.plist", "<plist><array>", "is not a valid property list"),
            ("sql_launch.plist", "DELETE FROM t", "neither a property list nor JSON"),
            ("sql_update_03.plist", "[]", "sql_update_03.plist and sql_update_3.plist both lead to version 03"),
            ("sql_update_x.plist", "[]", "the file name of the update contains no valid version"),
            ("sql_update_4.plist~", "[]", "the file name of the update contains no valid version"),
            ("sql_update_4.plist", "[]", "sql_update_4.plist leads to version 4, but the app's version is 3"),
            ("sql_update_1.plist", "[]", "sql_update_1.plist would never run"),
            ("sql_update_2.5.plist", "[]", nil),
            ("notes.txt", "anything", nil),
        ] as [(String, String?, String?)])
    func files(name: String, text: String?, expected: String?) throws {
        var files = Self.files
        files[name] = text
        let folder = try TemporaryFolder()
        let error = try storeError {
            try StepsFixture.configuration(files, in: folder, version: "3")
        }
        #expect((error == nil) == (expected == nil))
        guard let expected, let error else { return }
        #expect(error.code == .configuration)
        #expect(error.description.contains(expected), "\(error)")
        #expect(error.path?.contains("steps") == true)
    }

    @Test(
        "Steps in an invalid section of the configuration are refused with the reason",
        arguments: [
            (#"{}"#, #"updates: the key "directory" is missing"#),
            (#"{"directory": 3}"#, "updates.directory must be text"),
            (#"{"directory": ""}"#, "updates.directory is empty"),
            (#"{"direktory": "x"}"#, #"did you mean "directory"?"#),
            (#"{"directory": "nowhere"}"#, "the folder that contains the updates could not be read"),
            (#"{"directory": "steps"}, "dbTables": []"#, "a configuration can have only one schema source"),
        ])
    func section(text: String, expected: String) throws {
        let json = #"{"dbName": "app.db", "dbVersion": 3, "updates": \#(text)}"#
        let error = try storeError { try Configuration(data: Data(json.utf8), place: "app.json") }
        #expect(error?.code == .configuration)
        #expect(error?.description.contains(expected) == true, "\(error?.description ?? "no error")")
    }

    @Test("Steps in Swift that are unusable are named")
    func swift() throws {
        func refusal(_ steps: MigrationSteps, _ version: SchemaVersion) throws -> String? {
            let fixture = try MigrationFixture()
            let configuration = Configuration(databaseName: "app.db", version: version, schema: .steps(steps))
            return try storeError { try fixture.launch(configuration) }?.detail
        }
        let step = MigrationSteps.Work.sql([])
        let gap = MigrationSteps(baseline: step, updates: [.init(3, step)])
        #expect(try refusal(gap, 3)?.contains("the update to version 2") == true)
        let double = MigrationSteps(baseline: step, updates: [.init(2, step), .init(2, name: "other", step)])
        #expect(try refusal(double, 2)?.contains("both lead to version 2") == true)
        let dotted = try #require(SchemaVersion("1.2"))
        let late = MigrationSteps(numbering: .appVersions, baseline: step, updates: [.init(3, step)])
        #expect(try refusal(late, dotted)?.contains("update 3 leads to version 3") == true)
        #expect(
            try refusal(MigrationSteps(baseline: step, updates: []), dotted)?.contains("have consecutive numbers")
                == true
        )
    }

    // MARK: SQL

    private func fixture(_ statement: String, in file: String) throws -> StepsFixture {
        var files = Self.files
        let first =
            file == "sql_default.plist"
            ? "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT DEFAULT 'x;y')"
            : "CREATE INDEX IF NOT EXISTS i ON t (n); -- fine"
        files[file] = String(decoding: try JSONEncoder().encode([first, statement]), as: UTF8.self)
        let fixture = try StepsFixture(files)
        try fixture.write {
            try $0.executeScript(
                """
                CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT DEFAULT 'x;y', a TEXT); INSERT INTO t (n) VALUES ('kept');
                PRAGMA user_version = 2;
                """)
        }
        return fixture
    }

    @Test(
        "Steps that are unusable are named with file and place before anything is changed",
        arguments: [
            "CREATE TABEL u (x)", "INSERT INTO nowhere VALUES (1)", "UPDATE t SET nothing = 1", "SELECT 'open",
            "ALTER TABLE t ADD COLUMN n TEXT", "INSERT INTO t VALUES (?)", "CREATE TABLE u (x); CREATE TABLE u (x)",
            "CREATE TRIGGER late AFTER INSERT ON nowhere BEGIN SELECT 1; END",
        ], ["sql_update_3.plist", "sql_launch.plist"])
    func brokenSQL(statement: String, file: String) throws {
        let fixture = try fixture(statement, in: file)
        let error = try fixture.refusal()
        #expect(error.code == .configuration)
        #expect(error.detail.hasPrefix("\(file)[1]"))
        #expect(error.detail.hasSuffix("cannot run"))
        #expect(error.underlying != nil)
        #expect(try storeError { try fixture.plan() }?.detail == error.detail)
    }

    @Test("Steps that fail on a new database leave no file")
    func brokenInstall() throws {
        var files = Self.files
        files["sql_update_3.plist"] = #"["INSERT INTO t (id) VALUES (1), (1)"]"#
        let fixture = try StepsFixture(files)
        // The rows make the statement fail, which only the run itself detects.
        #expect(try fixture.plan().operations.count == 4)
        let error = try fixture.refusal()
        #expect(error.code == .migration)
        #expect(error.detail.contains("sql_update_3.plist[0]"))
        #expect(try fixture.folder.names == ["app.json", "steps"])
    }

    @Test("Steps are compared even if there are many")
    func manySteps() throws {
        let tables = (1...40).map { "CREATE TABLE t\($0) (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT)" }
        let columns = (1...40).map { "ALTER TABLE t\($0) ADD COLUMN d TEXT" }
        let rows = (1...200).map { "INSERT INTO t1 (a) VALUES ('\($0);;;;')" }.joined(separator: ";")
        let steps = MigrationSteps(
            baseline: .sql(tables), updates: [.init(2, .sql(columns)), .init(3, .sql([rows]))])
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), (tables + columns.dropLast()).joined(separator: ";"))
        let report = try fixture.launch(
            Configuration(databaseName: "app.db", version: 3, schema: .steps(steps)), recorded: 2)
        #expect(report.applied.count == 202)
        #expect(report.applied.first?.title == "addColumn t40.d")
    }

    @Test(
        "Steps must not leave the transaction",
        arguments: [
            ("BEGIN", "BEGIN"), ("begin immediate; SELECT 1", "BEGIN"), ("COMMIT", "COMMIT"), ("END", "COMMIT"),
            ("ROLLBACK", "ROLLBACK"), ("SAVEPOINT a", "SAVEPOINT"), ("RELEASE a", "SAVEPOINT"),
            ("ATTACH ':memory:' AS other", "ATTACH"), ("DETACH other", "ATTACH"), ("/* now */ vacuum", "VACUUM"),
            ("PRAGMA journal_mode = WAL", "PRAGMA journal_mode"),
            ("PRAGMA writable_schema = ON", "PRAGMA writable_sch"),
            ("PRAGMA cipher_version", "PRAGMA cipher_version"), ("SELECT 1; COMMIT; BEGIN", "COMMIT"),
        ], ["sql_update_3.plist", "sql_default.plist", "sql_launch.plist"])
    func leavesTransaction(statement: (sql: String, name: String), file: String) throws {
        let error = try fixture(statement.sql, in: file).refusal()
        #expect(error.code == .configuration)
        #expect(error.detail.hasPrefix("\(file)[1]"))
        #expect(error.detail.contains("cannot run \(statement.name)"), "\(error.detail)")
    }

    @Test(
        "Steps in Swift must not leave the transaction, and can nest transactions",
        arguments: ["COMMIT", "ROLLBACK", "ATTACH ':memory:' AS x"])
    func swiftLeavesTransaction(sql: String) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), "PRAGMA user_version = 1")
        let before = try fixture.content()
        func launch(_ body: @escaping @Sendable (Connection) throws -> Void) throws -> MigrationReport {
            try fixture.launch(
                Configuration(
                    databaseName: "app.db", version: 2,
                    schema: .steps(.init(baseline: .sql([]), updates: [.init(2, .swift(body))]))), recorded: 1)
        }
        let error = try storeError {
            try launch { connection in
                try connection.execute("CREATE TABLE made (x)")
                try connection.execute(SQL(text: sql))
            }
        }
        #expect(error?.code == .configuration)
        #expect(error?.detail.hasPrefix("the step \"update 2\" cannot run") == true)
        #expect(try fixture.content() == before)
        struct Undo: Error {}
        let report = try launch { connection in
            try connection.transaction { try connection.execute("CREATE TABLE made (x)") }
            do {
                try connection.transaction {
                    try connection.execute("CREATE TABLE undone (x)")
                    throw Undo()
                }
            } catch is Undo { return }
        }
        #expect(report.applied.map(\.kind) == [.swift, .stamp])
        let tables = try fixture.with {
            try $0.values(String.self, "SELECT name FROM sqlite_master WHERE name LIKE '%ade' OR name LIKE 'un%'")
        }
        #expect(tables == ["made"])
    }

    @Test(
        "Steps can create and write virtual tables whose modules run pragmas",
        arguments: ["rtree(a, b, c)"] + (Engine.current.wasBuilt(with: "ENABLE_FTS5") ? ["fts5(n)"] : []))
    func virtualTables(module: String) throws {
        var files = Self.files
        files["sql_update_3.plist"] = #"["CREATE VIRTUAL TABLE v USING \#(module)"]"#
        files["sql_launch.plist"] = #"["DELETE FROM v"]"#
        let fixture = try StepsFixture(files, extra: #", "recordedVersion": {"source": "userVersion"}"#)
        #expect(try fixture.open().outcome == .created)
        let legacy = try StepsFixture(files, extra: #", "recordedVersion": {"source": "userVersion"}"#)
        try legacy.write {
            try $0.executeScript(
                """
                CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT DEFAULT 'x;y'); ALTER TABLE t ADD COLUMN a TEXT;
                PRAGMA user_version = 2
                """)
        }
        #expect(try legacy.open().outcome == .encrypted)
        #expect(try legacy.read { try $0.value(Int.self, "SELECT count(*) FROM v") } == 0)
    }

    @Test("Steps can contain several statements, triggers, comments and the allowed pragmas")
    func accepted() throws {
        let texts = [
            "-- nothing but a comment", "", " ; ;", "PRAGMA foreign_keys = OFF; PRAGMA user_version = 77;",
            "CREATE TRIGGER kept AFTER INSERT ON t BEGIN UPDATE t SET n = 'a;b'; SELECT 1; END; CREATE INDEX j ON t (a) ;;",
        ]
        var files = Self.files
        files["sql_update_3.plist"] = String(decoding: try JSONEncoder().encode(texts), as: UTF8.self)
        let fixture = try StepsFixture(files)
        let plan = try fixture.plan()
        #expect(
            plan.operations.compactMap(\.object).filter { $0.contains("_3") } == [
                "sql_update_3.plist[3] statement 1", "sql_update_3.plist[3] statement 2",
                "sql_update_3.plist[4] statement 1", "sql_update_3.plist[4] statement 2",
            ])
        #expect(try fixture.open().outcome == .created)
        #expect(try fixture.read { try $0.value(Int.self, "PRAGMA user_version") } == 3)
    }
}
