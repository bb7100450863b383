internal import CipherHistory
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct AtomicityTests {
    static let script = """
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT, sent INTEGER, junk BLOB);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO chat SELECT i * 3, 'text ' || i, i, zeroblob(100) FROM n;
        CREATE TABLE message(chat REFERENCES chat(id) ON DELETE CASCADE, note TEXT);
        INSERT INTO message SELECT id, content FROM chat;
        CREATE TABLE old(x); INSERT INTO old VALUES (1);
        CREATE TABLE gone(x); INSERT INTO gone VALUES (1);
        CREATE INDEX chat_sent ON chat(sent); CREATE INDEX message_note ON message(note);
        CREATE VIEW news AS SELECT content FROM chat; CREATE VIEW stale AS SELECT 1;
        CREATE TRIGGER chat_delete AFTER DELETE ON chat BEGIN DELETE FROM message WHERE chat = old.id; END;
        CREATE TRIGGER stale_trigger AFTER DELETE ON message BEGIN SELECT 1; END;
        """

    /// Requests every kind of change.
    static let source: WantedSource = {
        var source = WantedSource(
            statements: [
                "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT, sent TEXT)",
                "CREATE TABLE message(chat REFERENCES chat(id) ON DELETE CASCADE, note TEXT, added TEXT)",
                "CREATE TABLE young(x)", "CREATE TABLE label(id INTEGER PRIMARY KEY, name TEXT)",
                "CREATE INDEX chat_sent ON chat(sent)", "CREATE INDEX message_note ON message(note, chat)",
                "CREATE VIEW news AS SELECT id, body FROM chat", "CREATE VIEW fresh AS SELECT name FROM label",
                "CREATE TRIGGER chat_delete AFTER DELETE ON chat BEGIN DELETE FROM message WHERE chat IS old.id; END",
                "CREATE TRIGGER label_insert AFTER INSERT ON label BEGIN SELECT 1; END",
            ], policy: .allow)
        source.renames.tables[SQLName("young")] = "old"
        source.renames.columns[SQLName("chat")] = [SQLName("body"): "content"]
        source.steps = [
            Plan.Operation(
                .copyRows, table: "label", sql: ["INSERT INTO label(name) SELECT body FROM chat LIMIT 3"],
                reason: "test"),
            Plan.Operation(.sql, object: "step", sql: ["UPDATE chat SET body = body || '.'"], reason: "test"),
            Plan.Operation(
                .swift, object: "step", reason: "test",
                action: .init("step") { try $0.execute("DELETE FROM message WHERE chat < 100") }),
        ]
        return source
    }()

    @Test(
        "A migration that fails at any operation leaves everything unchanged",
        arguments: MigrationFixture.Form.all)
    func changesNothing(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let plan = try fixture.with(.readOnly) {
            try SchemaMigrator(version: 25, source: Self.source, policy: .allow).plan($0, recorded: 1)
        }
        var kinds = Set(Plan.Operation.Kind.allCases)
        // If the engine has no RENAME COLUMN, the table is rebuilt.
        if Engine.current.sqliteVersionNumber < 3_025_000 { kinds.remove(.renameColumn) }
        #expect(Set(plan.operations.map(\.kind)) == kinds)
        let (dump, bytes) = (try fixture.dump(), try fixture.bytes())
        for position in 0...plan.operations.count {
            for failure in Self.failures {
                var operations = plan.operations
                operations.insert(failure, at: position)
                let error = try storeError {
                    try fixture.with { connection in
                        try connection.execute("PRAGMA foreign_keys = ON")
                        defer { #expect((try? connection.value(Bool.self, "PRAGMA foreign_keys")) == true) }
                        return try SchemaMigrator(version: 25, source: FixedSource(operations: operations))
                            .migrate(connection) { 1 }
                    }
                }
                #expect(error?.code == .migration, "at \(position)")
                let title = failure.kind == .swift ? "the step \"failing\"" : "\(failure.kind.rawValue) failing"
                #expect(error?.detail.contains(title) == true, "at \(position)")
                let differences = try fixture.dump().differences(from: dump)
                #expect(differences.isEmpty, "at \(position): \(differences)")
                if form.journalMode == "DELETE" { #expect(try fixture.bytes() == bytes, "at \(position)") }
            }
        }
        let report = try fixture.launch(Self.source, foreignKeys: true)
        #expect(report.titles.count == plan.operations.count - 1)
        #expect(try fixture.rows("SELECT count(*) FROM chat") == ["\(Value.integer(300))"])
        #expect(try fixture.rows("SELECT count(*) FROM message") == ["\(Value.integer(267))"])
        #expect(try fixture.rows("PRAGMA foreign_key_check").isEmpty)
        #expect(try fixture.launch(Self.source).applied.isEmpty)
    }

    private struct Mishap: Error {}

    static let failures = [
        Plan.Operation(
            .sql, object: "failing",
            sql: ["CREATE TABLE half(x)", "DELETE FROM sqlite_sequence", "SELECT * FROM nosuch"],
            reason: "test"),
        Plan.Operation(
            .swift, object: "failing", reason: "test",
            action: .init("failing") { connection in
                try connection.execute("CREATE TABLE half(x)")
                throw Mishap()
            }),
    ]

    @Test(
        "A migration with a step that would end the transaction fails before it does, and names the step",
        arguments: ["COMMIT", "ROLLBACK"])
    func refusesCommit(sql: String) throws {
        let fixture = try MigrationFixture()
        let before = try fixture.content()
        let ending = Plan.Operation(.sql, object: "step", sql: ["CREATE TABLE half(x)", sql], reason: "test")
        let error = try storeError {
            try fixture.with {
                try SchemaMigrator(version: 25, source: FixedSource(operations: [ending])).migrate($0) { 1 }
            }
        }
        #expect(error?.detail.hasPrefix("step cannot run \(sql)") == true)
        #expect(try fixture.content() == before)
    }

    @Test("A migration reports that SQLite ended the transaction, even if the step ignored this")
    func noticesRollback() throws {
        let fixture = try MigrationFixture()
        let before = try fixture.content()
        let careless = Plan.Operation(
            .swift, object: "step", reason: "test",
            action: .init("careless") { connection in
                try connection.execute("CREATE TABLE half(x UNIQUE)")
                do {
                    try connection.execute("INSERT OR ROLLBACK INTO half VALUES (1), (1)")
                } catch is DatabaseError { return }
            })
        let error = try storeError {
            try fixture.with {
                try SchemaMigrator(version: 25, source: FixedSource(operations: [careless])).migrate($0) { 1 }
            }
        }
        #expect(error?.detail == "swift step ended the migration's transaction")
        #expect(try fixture.content() == before)
    }

    @Test("A migration that fails in Swift reports the type of the error, never its text")
    func hidesErrors() throws {
        struct Secret: Error { let value = "4711" }
        let fixture = try MigrationFixture()
        let failing = Plan.Operation(
            .swift, object: "step", reason: "test", action: .init("secretive") { _ in throw Secret() })
        let error = try storeError {
            try fixture.with {
                try SchemaMigrator(version: 25, source: FixedSource(operations: [failing])).migrate($0) { 1 }
            }
        }
        #expect(
            error?.detail
                == "the schema migration failed during the step \"step\": the app's code threw an error of type Secret")
        #expect(error?.description.contains("4711") == false)
    }
}
