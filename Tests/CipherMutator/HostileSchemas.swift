internal import CipherSQLite
import CipherTestSupport

/// A database that was made to harm the program that upgrades it.
struct HostileDatabase: Sendable {
    let name: String
    /// How the upgrade must end: the outcome, or the code of the error.
    let outcome: String
    /// Whether the upgrade takes more than a moment.
    var isSlow = false
    let write: @Sendable (TemporaryFolder) throws -> Void

    static let all = HostileDatabase.schemas + HostileDatabase.trees + HostileDatabase.sizes

    init(
        _ name: String, _ outcome: String, isSlow: Bool = false,
        write: @escaping @Sendable (TemporaryFolder) throws -> Void
    ) {
        self.name = name
        self.outcome = outcome
        self.isSlow = isSlow
        self.write = write
    }

    /// A database that is made by SQL, and by edits of the schema table if SQLite refuses the SQL.
    init(_ name: String, _ outcome: String, isSlow: Bool = false, _ script: String, schema: String = "") {
        self.init(name, outcome, isSlow: isSlow) { folder in
            try LegacyFile.write(folder.path("app.db")) { connection in
                connection.allowDoubleQuotedStrings()
                try connection.executeScript(text: script)
                guard !schema.isEmpty else { return }
                try connection.executeScript(text: "PRAGMA writable_schema = ON; \(schema); PRAGMA schema_version = 99")
            }
        }
    }

    /// Calls that write, load or read files, or request memory, wherever a schema may contain them.
    private static let calls = [
        "load_extension('/tmp/harm.so')", "fts3_tokenizer('simple', x'4141414141414141')", "writefile('harm', 'x')",
        "readfile('/etc/hostname')", "edit('x', 'touch harm')", "sqlcipher_export('main')", "zeroblob(999999999)",
        "randomblob(999999999)", "hex(zeroblob(499999999))", "printf('%.*c', 999999999, 'x')",
    ]

    private static let rows = "INSERT INTO t(a) VALUES (1), (2), (3);"

    private static let schemas: [HostileDatabase] =
        calls.flatMap { call in
            let text = call.replacing("'", with: "''")
            let definition = "UPDATE sqlite_master SET sql = 'CREATE TABLE t(a"
            return [
                HostileDatabase(
                    "a view, and triggers of every kind, call \(call)", "encrypted",
                    "CREATE TABLE t(a); \(rows) CREATE VIEW v AS SELECT 1; CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END; "
                        + "CREATE TRIGGER y BEFORE DELETE ON t BEGIN SELECT 1; END;",
                    schema:
                        "UPDATE sqlite_master SET sql = 'CREATE VIEW v AS SELECT \(text) AS a FROM t' WHERE name = 'v'; "
                        + "UPDATE sqlite_master SET sql = replace(sql, 'SELECT 1', 'SELECT \(text)') WHERE type = 'trigger'"
                ),
                HostileDatabase(
                    "a CHECK and a DEFAULT call \(call)", "encrypted", "CREATE TABLE t(a); \(rows)",
                    schema: "\(definition) CHECK (\(text) IS NOT 1), b DEFAULT (\(text)))' WHERE name = 't'"),
            ]
        } + computed + shapes

    /// Expressions that are computed when rows are checked or an index is built.
    ///
    /// Engines without such columns refuse the schema.
    private static let computed: [HostileDatabase] = [
        HostileDatabase(
            "an index computes a gigabyte for each row", "corrupt",
            "CREATE TABLE t(a); CREATE INDEX i ON t(length(zeroblob(a * 300000000))); \(rows)"),
        HostileDatabase(
            "a partial index computes a gigabyte for each row", "corrupt",
            "CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE length(zeroblob(a * 300000000)) > 0; \(rows)"),
    ]

    private static let shapes: [HostileDatabase] = [
        HostileDatabase(
            "views that lead to each other", "encrypted",
            "CREATE TABLE t(a); \(rows) CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w AS SELECT * FROM v;",
            schema: "UPDATE sqlite_master SET sql = 'CREATE VIEW v AS SELECT * FROM w' WHERE name = 'v'"),
        HostileDatabase(
            "a view that never ends", "encrypted",
            "CREATE TABLE t(a); \(rows) CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c;"
        ),
        HostileDatabase(
            "triggers that fire each other", "encrypted",
            "CREATE TABLE t(a); CREATE TABLE u(a); \(rows) CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO u VALUES (1); END; "
                + "CREATE TRIGGER y AFTER INSERT ON u BEGIN INSERT INTO t VALUES (1); END;"),
        HostileDatabase(
            "a view that is entered as a table with a b-tree", "corrupt",
            "CREATE TABLE t(a); \(rows) CREATE VIEW v AS SELECT load_extension('x') FROM t;",
            schema: "UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'v'"),
        HostileDatabase(
            "a virtual table that is entered as a table with a b-tree", "corrupt",
            "CREATE VIRTUAL TABLE f USING fts4(a); INSERT INTO f VALUES ('x'); CREATE TABLE t(a); \(rows)",
            schema: "UPDATE sqlite_master SET rootpage = 2 WHERE name = 'f'"),
        HostileDatabase(
            "a table that is entered as an index", "corrupt", "CREATE TABLE t(a); \(rows) CREATE TABLE u(a);",
            schema: "UPDATE sqlite_master SET type = 'index' WHERE name = 'u'"),
        HostileDatabase(
            "virtual tables of modules that read and write pages and files", "encrypted", "CREATE TABLE t(a); \(rows)",
            schema: ["sqlite_dbpage", "zipfile('/etc/hostname')", "csv(filename='/etc/hostname')", "fsdir", "dbstat"]
                .enumerated().map {
                    "INSERT INTO sqlite_master VALUES ('table', 'm\($0)', 'm\($0)', 0, 'CREATE VIRTUAL TABLE m\($0) USING \($1.replacing("'", with: "''"))')"
                }.joined(separator: ";")),
    ]
}
