internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct ScratchDatabaseTests {
    /// Enough objects of each kind that their rows in the schema table are removed before all objects exist.
    private static let many =
        (0..<450).map { number in
            switch number % 5 {
            case 0: "CREATE TABLE t\(number)(id INTEGER PRIMARY KEY AUTOINCREMENT, a REFERENCES t1(a))"
            case 1: "CREATE TABLE t\(number)(a TEXT PRIMARY KEY, b UNIQUE) WITHOUT ROWID"
            case 2: "CREATE TABLE t\(number)(a TEXT COLLATE NOCASE UNIQUE, b CHECK (b > 0))"
            default: "CREATE TABLE t\(number)(a, b)"
            }
        }
        + (0..<450).map { number in
            switch number % 4 {
            case 0: "CREATE INDEX i\(number) ON t\(number)(a) WHERE a > 1"
            case 1: "CREATE VIEW v\(number) AS SELECT a FROM t\(number)"
            case 2: "CREATE TRIGGER r\(number) AFTER DELETE ON t\(number) BEGIN DELETE FROM t3; END"
            default: "CREATE UNIQUE INDEX i\(number) ON t\(number)(a)"
            }
        }

    private static func source(_ script: String = "") throws -> MigrationFixture {
        let all = ["BEGIN"] + many + [script, "COMMIT"]
        return try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), all.joined(separator: ";"))
    }

    private static func schema(_ connection: Connection) throws -> [String] {
        var rows: [String] = []
        try connection.forEachRow("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name") { row in
            rows.append((0..<4).map { "\(row.value(at: $0))" }.joined(separator: " "))
        }
        return rows
    }

    @Test("A scratch database of a schema with several hundred objects contains all of them")
    func isWhole() throws {
        try Self.source("CREATE VIRTUAL TABLE f USING fts4(a)").with(.readOnly) { source in
            let scratch = try ScratchDatabase(after: source, SQLExtensions())
            #expect(scratch.isComplete)
            #expect(try Self.schema(scratch.connection) == Self.schema(source))
            #expect(try scratch.snapshot().definitions == SchemaSnapshot(of: source).definitions)
            #expect(try scratch.dangling().isEmpty)
            #expect(try scratch.connection.value(String.self, "PRAGMA integrity_check") == "ok")
            #expect(throws: DatabaseError.self) { try scratch.connection.execute("DELETE FROM sqlite_master") }
        }
    }

    @Test("A scratch database of a large schema supports renames that affect older and newer objects")
    func renames() throws {
        try Self.source().with(.readOnly) { source in
            let connection = try ScratchDatabase(after: source, SQLExtensions()).connection
            try connection.executeScript(
                """
                ALTER TABLE t5 RENAME TO other; INSERT INTO other(a) VALUES (NULL); DROP TABLE t10;
                INSERT INTO t445(a) VALUES (NULL); CREATE TABLE t10(a)
                """)
            let sequences = try connection.values(String.self, "SELECT name FROM sqlite_sequence ORDER BY name")
            #expect(sequences == ["other", "t445"])
            let view = try connection.value(String.self, "SELECT sql FROM sqlite_master WHERE name = 'v5'")
            #expect(view?.contains("other") == Engine.current.canRenameColumns)
            #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
        }
    }

    @Test("A scratch database of a large schema lacks only what needs the app's own collation")
    func lacksOwn() throws {
        let fixture = try Self.source()
        let own = Collation(name: "own") { $0.count - $1.count }
        try fixture.with { connection in
            try connection.register(own)
            try connection.executeScript(
                """
                CREATE TABLE lost(a COLLATE own UNIQUE); CREATE INDEX lost2 ON t3(a COLLATE own);
                CREATE TABLE kept(a); CREATE INDEX kept2 ON kept(a)
                """)
        }
        try fixture.with(.readOnly) { source in
            try source.register(own)
            let scratch = try ScratchDatabase(after: source, SQLExtensions())
            #expect(!scratch.isComplete)
            #expect(try Self.schema(scratch.connection) == Self.schema(source).filter { !$0.contains("lost") })
            #expect(try ScratchDatabase(after: source, SQLExtensions(collations: [own])).isComplete)
        }
    }

    @Test(
        "A scratch database of a large schema lacks only what fails when it is created",
        .enabled(if: Engine.current.wasBuilt(with: "ENABLE_FTS5")))
    func lacksFailing() throws {
        // A new virtual table has two rows in `f_data`, and this one has one.
        let script = """
            CREATE VIRTUAL TABLE f USING fts5(a); DELETE FROM f_data WHERE id = 1;
            CREATE UNIQUE INDEX lost ON f_data(typeof(block)); CREATE INDEX kept ON t3(b)
            """
        try Self.source(script).with(.readOnly) { source in
            let scratch = try ScratchDatabase(after: source, SQLExtensions())
            #expect(!scratch.isComplete)
            #expect(try Self.schema(scratch.connection) == Self.schema(source).filter { !$0.contains("lost") })
            #expect(try scratch.connection.value(String.self, "PRAGMA integrity_check") == "ok")
        }
    }
}
