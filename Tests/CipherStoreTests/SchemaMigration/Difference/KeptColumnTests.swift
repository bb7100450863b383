internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct KeptColumnTests {
    private func fixture(_ script: String) throws -> MigrationFixture {
        try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
    }

    @Test(
        "A kept column keeps its values if a byte order mark or a comment precedes its name",
        arguments: ["\u{feff}old", "/**/ old", "\u{feff}\"old\"", "'old'"])
    func keepsMarkedColumn(name: String) throws {
        let fixture = try fixture("CREATE TABLE t(a TEXT, \(name) TEXT); INSERT INTO t VALUES ('x', 'y')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT NOT NULL DEFAULT '')"])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.withheld.map(\.kind) == [.dropColumn])
        #expect(try fixture.rows("SELECT * FROM t") == ["\(Value.text("x"))|\(Value.text("y"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("New rows can omit a kept column that was declared NOT NULL without a default")
    func canOmitKeptColumn() throws {
        let fixture = try fixture(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT,
                old TEXT CONSTRAINT n NOT NULL ON CONFLICT IGNORE CHECK (old NOT NULL OR id > 1) COLLATE NOCASE,
                kept TEXT NOT NULL DEFAULT 'k');
            INSERT INTO t VALUES (1, 'x', 'y', 'z');
            """)
        let source = WantedSource(statements: ["CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT)"])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        let note = report.findings.first { $0.message == "the migration removes NOT NULL (old) from t" }
        #expect(note?.severity == .note)
        try fixture.with { try $0.executeScript("INSERT INTO t(a) VALUES ('new')") }
        #expect(
            try fixture.rows("SELECT old, kept FROM t") == [
                "\(Value.text("y"))|\(Value.text("z"))", "\(Value.null)|\(Value.text("k"))",
            ])
        #expect(try fixture.schema()["t"]?.contains("CHECK (old NOT NULL OR id > 1) COLLATE NOCASE") == true)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let unregistered = [
        "CREATE TABLE t(a TEXT, x TEXT NOT NULL CHECK (absent(x)))",
        "CREATE TABLE t(a TEXT, x TEXT NOT NULL COLLATE absent)",
        "CREATE TABLE t(a TEXT, x TEXT NOT NULL, y CHECK (absent(y)))",
        "CREATE TABLE t(a TEXT, x TEXT NOT NULL); CREATE INDEX i ON t(x COLLATE absent)",
    ]

    // SQLite 3.15 cannot change the schema of a database with an index whose collation is not registered.
    @Test(
        "A table whose kept columns need what the app has not registered is left as it is",
        arguments: Engine.current.checksTables ? unregistered : Array(unregistered.dropLast()))
    func keepsUnregistered(schema: String) throws {
        let fixture = try fixture("")
        try fixture.with { connection in
            try connection.register(SQLFunction("absent", argumentCount: 1) { _ in .integer(1) })
            try connection.register(Collation(name: "absent") { _, _ in 0 })
            try connection.executeScript(text: schema)
        }
        let table = try fixture.schema()["t"]
        let report = try fixture.launch(WantedSource(statements: ["CREATE TABLE t(a TEXT)"]))
        #expect(report.titles.isEmpty)
        #expect(report.withheld.first?.kind == .dropColumn)
        #expect(try fixture.schema()["t"] == table)
    }

    @Test("A kept column that was the primary key loses only the key, and other kept columns lose nothing")
    func losesOnlyKey() throws {
        let email = "email TEXT NOT NULL DEFAULT '' COLLATE NOCASE UNIQUE CHECK (email <> 'x')"
        let owner = "owner TEXT REFERENCES p(x) ON DELETE CASCADE"
        let fixture = try fixture(
            """
            CREATE TABLE p(x TEXT PRIMARY KEY);
            CREATE TABLE t(k TEXT CONSTRAINT c PRIMARY KEY ON CONFLICT REPLACE COLLATE RTRIM, \(email), \(owner), name);
            INSERT INTO t VALUES ('k1', 'a@b', NULL, 'n');
            """)
        let source = WantedSource(
            statements: ["CREATE TABLE t(id INTEGER PRIMARY KEY, name)", "CREATE TABLE p(x TEXT PRIMARY KEY)"])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.withheld.map(\.column) == ["k", "email", "owner"])
        #expect(
            report.findings.map(\.message) == [
                "the migration removes ON CONFLICT REPLACE (k) from t", "the migration removes PRIMARY KEY (k) from t",
            ])
        let sql = try #require(try fixture.schema()["t"])
        #expect(sql.contains(email) && sql.contains(owner) && sql.contains("COLLATE RTRIM"))
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A kept column whose CHECK names a dropped column loses only this CHECK")
    func losesOnlyCheck() throws {
        let fixture = try fixture(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a, g TEXT DEFAULT none NOT NULL COLLATE NOCASE CHECK (g <> a),
                h UNIQUE CHECK (h > 0), CHECK (h > id), CHECK (h > a));
            CREATE VIEW v AS SELECT g, h FROM t; INSERT INTO t VALUES (1, 2, 'b', 5);
            """)
        let source = WantedSource(statements: ["CREATE TABLE t(id INTEGER PRIMARY KEY)"], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        let removed = report.findings.map(\.message).filter { $0.contains("CHECK") || $0.contains("UNIQUE") }
        #expect(
            removed == [
                "the migration removes CHECK (g <> a) from t", "the migration removes CHECK (h > a) from t",
            ])
        let sql = try #require(try fixture.schema()["t"])
        #expect(sql.contains("UNIQUE CHECK (h > 0), CHECK (h > id)"))
        try fixture.with { try $0.executeScript("INSERT INTO t(id) VALUES (2)") }
        #expect(try fixture.rows("SELECT g FROM t WHERE g = 'NONE'") == ["\(Value.text("none"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A table stays strict if a kept column would convert its values without STRICT",
        .enabled(if: Engine.current.hasStrictTables),
        arguments: [DestructiveChanges.withhold, .allow])
    func keepsValuesOfAny(policy: DestructiveChanges) throws {
        let fixture = try fixture(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a ANY) STRICT; CREATE VIEW v AS SELECT a FROM t;
            INSERT INTO t VALUES (1, '007'), (2, '1e3'), (3, x'00');
            """)
        let json = """
            {"dbName": "app.db", "dbVersion": 25, "dbTables": [{"t": [{"id": "INTEGER PRIMARY KEY"}, {"z": "TEXT"}]}],
             "tableOptions": {"t": {"strict": false}}, "destructiveChanges": "\(policy.rawValue)"}
            """
        let configuration = try Configuration(data: Data(json.utf8), place: "test.json")
        let report = try fixture.launch(configuration)
        #expect(report.withheld.map(\.kind) == [.dropColumn, .changeTable])
        #expect(report.withheld.last?.rows == 2)
        #expect(
            try fixture.rows("SELECT a FROM t WHERE id < 3") == ["007", "1e3"].map { "\(Value.text($0))" })
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    static let indirectUsers = [
        "CREATE VIEW v2 AS SELECT id FROM v1 WHERE deletedAt IS NULL",
        """
        CREATE VIEW v2 AS SELECT * FROM v1;
        CREATE TRIGGER tr AFTER INSERT ON log BEGIN
            DELETE FROM cache WHERE id IN (SELECT id FROM v2 WHERE "deletedAt" IS NOT NULL);
        END
        """,
        """
        CREATE TRIGGER tr INSTEAD OF DELETE ON v1 WHEN old."deletedAt" IS NULL BEGIN
            DELETE FROM cache WHERE id = old.id;
        END
        """,
    ]

    @Test(
        "An undeclared column stays if a view or trigger uses it through a view of all columns",
        arguments: indirectUsers)
    func keepsColumnUsedThroughView(script: String) throws {
        let fixture = try fixture(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, deletedAt INTEGER); INSERT INTO t VALUES (1, NULL), (2, 5);
            CREATE TABLE log(x); CREATE TABLE cache(id); CREATE VIEW v1 AS SELECT * FROM t; \(script);
            """)
        let source = WantedSource(
            statements: [
                "CREATE TABLE t(id INTEGER PRIMARY KEY)", "CREATE TABLE log(x)", "CREATE TABLE cache(id)",
            ], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.titles.isEmpty)
        #expect(report.withheld.map(\.column) == ["deletedAt"])
        #expect(try fixture.rows("SELECT id FROM t WHERE deletedAt IS NULL").count == 1)
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
