internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct AddColumnLimitTests {
    struct Limit: Sendable, CustomTestStringConvertible {
        var definition: String
        /// Whether engines since SQLite 3.26, which check the rows, accept the definition on an empty table.
        var isFineWhenEmpty = false
        /// Whether existing rows have no value for the column.
        var needsValue = false
        var testDescription: String { definition }
    }

    static let limits =
        [
            Limit(definition: "INTEGER PRIMARY KEY"),
            Limit(definition: "TEXT PRIMARY KEY"),
            Limit(definition: "TEXT UNIQUE"),
            Limit(definition: "TEXT NOT NULL", isFineWhenEmpty: true, needsValue: true),
            Limit(definition: "TEXT NOT NULL DEFAULT NULL", isFineWhenEmpty: true, needsValue: true),
            Limit(definition: "TEXT DEFAULT CURRENT_TIMESTAMP", isFineWhenEmpty: true),
            Limit(definition: "TEXT DEFAULT CURRENT_DATE", isFineWhenEmpty: true),
            Limit(definition: "TEXT DEFAULT CURRENT_TIME", isFineWhenEmpty: true),
            Limit(definition: "INTEGER DEFAULT (1 + 1)", isFineWhenEmpty: true),
            Limit(definition: "INTEGER DEFAULT (random())", isFineWhenEmpty: true),
            Limit(definition: "TEXT, UNIQUE (added)"),
        ]
        + (Engine.current.hasGeneratedColumns
            ? [Limit(definition: "INTEGER AS (id + 1) STORED", isFineWhenEmpty: true)] : [])

    @Test(
        "A column that SQLite cannot append is added by a rebuild, which keeps the rows", arguments: limits,
        [false, true])
    func rebuilds(limit: Limit, holdsRows: Bool) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE chat(id INTEGER)" + (holdsRows ? "; INSERT INTO chat VALUES (1)" : ""))
        let before = try fixture.bytes()
        let configuration = Configuration.declaring([
            "new": ["x": "TEXT"], "chat": ["id": "INTEGER", "added": limit.definition],
        ])
        if limit.needsValue, holdsRows {
            let planning = try storeError {
                try fixture.with(.readOnly) { try SchemaMigrator(configuration: configuration).plan($0, recorded: nil) }
            }
            let error = try #require(planning)
            #expect(error.code == .migration)
            #expect(error.detail.contains("the NOT NULL column chat.added has no default, but the table"))
            #expect(try storeError { try fixture.launch(configuration) }?.detail == error.detail)
            #expect(try fixture.bytes() == before)
            return
        }
        let appends = limit.isFineWhenEmpty && !holdsRows && Engine.current.sqliteVersionNumber >= 3_026_000
        let report = try fixture.launch(configuration)
        #expect(report.applied.map(\.kind) == [.createTable, appends ? .addColumn : .rebuildTable, .stamp])
        #expect(try fixture.with { try $0.value(Int.self, "SELECT count(*) FROM chat") } == (holdsRows ? 1 : 0))
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    static let fine = [
        "", "TEXT", "TEXT NOT NULL DEFAULT ''", "INTEGER DEFAULT (5)", "INTEGER DEFAULT -1", "REAL DEFAULT 1e3",
        "BLOB DEFAULT x'00'", "TEXT DEFAULT NULL", "TEXT COLLATE NOCASE", "INTEGER REFERENCES other(id)",
        "INTEGER CHECK (added > 0)", "INTEGER CHECK (id IS NOT NULL)",
        "INTEGER NOT NULL DEFAULT 1 CHECK (added > id - 1)",
    ]

    @Test(
        "A column that SQLite can append is appended, with rows and without", arguments: fine, [false, true])
    func appends(definition: String, holdsRows: Bool) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: true, journalMode: "WAL"),
            "CREATE TABLE chat(id INTEGER)" + (holdsRows ? "; INSERT INTO chat VALUES (1)" : ""))
        let configuration = Configuration.declaring(["chat": ["id": "INTEGER", "added": definition]])
        #expect(try fixture.launch(configuration).applied.map(\.kind) == [.addColumn, .stamp])
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    @Test(
        "A column that SQLite can append is appended in strict tables too",
        .enabled(if: Engine.current.hasStrictTables))
    func appendsToStrictTables() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE chat(id INTEGER, body ANY) STRICT; INSERT INTO chat VALUES (1, 2)")
        try fixture.launch(.declaring(["chat": ["id": "INTEGER", "body": "ANY", "a": "TEXT", "b": "REAL"]]))
        let error = try storeError {
            try fixture.launch(.declaring(["chat": ["id": "INTEGER", "c": "VARCHAR(3)"]], version: 26))
        }
        #expect(error?.underlying?.message.contains("chat.c") == true)
    }

    @Test(
        "A generated column is appended if SQLite can append it",
        .enabled(if: Engine.current.hasGeneratedColumns))
    func appendsGeneratedColumns() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE chat(id INTEGER); INSERT INTO chat VALUES (1)")
        let configuration = Configuration.declaring([
            "chat": ["id": "INTEGER", "a": "INTEGER NOT NULL DEFAULT 2", "b": "INTEGER NOT NULL AS (id + a)"]
        ])
        try fixture.launch(configuration)
        #expect(try fixture.launch(configuration).applied.isEmpty)
        #expect(try fixture.with { try $0.value(Int.self, "SELECT b FROM chat") } == 3)
    }

    @Test(
        "A column is appended although a row already violates an unchanged CHECK, which SQLite would test again",
        .enabled(if: Engine.current.hasStrictTables),
        arguments: [("STRICT", "b TEXT"), ("", "g TEXT NOT NULL AS (coalesce(a, 'n'))")])
    func appendsBesideViolations(option: String, column: String) throws {
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT CHECK (a > 0)"
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "\(table)) \(option); PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (1, -1)")
        let source = WantedSource(statements: ["\(table), \(column)) \(option)"])
        #expect(try fixture.launch(source).applied.map(\.kind) == [.addColumn, .stamp])
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.integer(-1))"])
        #expect(throws: DatabaseError.self) {
            try fixture.with { try $0.executeScript("INSERT INTO t(id, a) VALUES (2, -2)") }
        }
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test(
        "A column with a CHECK is added although a row already violates an unchanged CHECK",
        arguments: Engine.current.hasStrictTables ? ["", "STRICT"] : [""],
        [("INT", Plan.Operation.Kind.addColumn), ("INT UNIQUE", .rebuildTable)])
    func addsCheckBesideViolations(option: String, column: (type: String, kind: Plan.Operation.Kind)) throws {
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT CHECK (a > 0)"
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "\(table)) \(option); PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (1, -1)")
        let rejected = WantedSource(statements: ["\(table), b \(column.type) DEFAULT -1 CHECK (b > 0)) \(option)"])
        let error = try storeError { try fixture.launch(rejected) }
        #expect(error?.detail.contains("1 row of t would violate CHECK (b > 0)") == true)
        let source = WantedSource(statements: ["\(table), b \(column.type) CHECK (b > 0)) \(option)"])
        #expect(try fixture.launch(source).applied.map(\.kind) == [column.kind, .stamp])
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.integer(-1))"])
        for values in ["2, -1, 1", "2, 1, -1"] {
            #expect(throws: DatabaseError.self) {
                try fixture.with { try $0.executeScript(text: "INSERT INTO t VALUES (\(values))") }
            }
        }
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
