internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Schemas that a copy rewrites, reorders or cannot read.
struct SchemaHazardTests {
    @Test("The schema is kept to the letter", arguments: Self.tables + Self.names + Self.headers)
    func encryptSchema(hazard: Hazard) throws {
        try hazard.run()
    }

    @Test("Indexes are kept entry by entry", arguments: Self.indexes)
    func encryptIndex(hazard: Hazard) throws {
        try hazard.run()
    }

    private static let tables: [Hazard] = [
        Hazard(
            "tables WITHOUT ROWID",
            "CREATE TABLE w(b TEXT, a INT, c, PRIMARY KEY(a DESC, b COLLATE NOCASE)) WITHOUT ROWID;"
                + "INSERT INTO w VALUES ('x', 1, NULL), ('y', 2, 3), ('z', 2, x'00'); CREATE INDEX i ON w(c);"),
        Hazard(
            "comments, line breaks and lower case in the text",
            "create   table\n\tt ( a -- the first\n , b /* second; */ text default 'it''s' );\ninsert into t values (1, 2);"
                + "create view\n v as -- all\n select * from t; create trigger tr after insert on t begin\n select 1; end;"
        ),
        Hazard(
            "triggers that would fire on an insert",
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE bare(a); CREATE TABLE log(what);
            CREATE TRIGGER after_t AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END;
            CREATE TRIGGER before_bare BEFORE INSERT ON bare BEGIN INSERT INTO log VALUES ('bare'); DELETE FROM t; END;
            CREATE TRIGGER refuse BEFORE INSERT ON log WHEN (SELECT count(*) FROM log) > 3 BEGIN SELECT RAISE(ABORT, 'no'); END;
            INSERT INTO t VALUES (1, 'x'); INSERT INTO bare VALUES (1); INSERT INTO t VALUES (2, 'y');
            """),
        Hazard("triggers and views that name what is not there") { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a); CREATE TABLE gone(a); INSERT INTO t VALUES (1);
                CREATE VIEW v AS SELECT app_function(a) FROM gone JOIN never; CREATE VIEW first AS SELECT * FROM v;
                CREATE TRIGGER tr AFTER UPDATE ON t BEGIN INSERT INTO gone VALUES (app_function(new.a)); END;
                CREATE TRIGGER io INSTEAD OF INSERT ON v BEGIN SELECT 1; END;
                CREATE TEMP TRIGGER passing AFTER INSERT ON t BEGIN SELECT 1; END;
                DROP TABLE gone;
                """)
        },
        Hazard(
            "objects in an order of their own",
            "CREATE VIEW v AS SELECT * FROM later; CREATE TABLE a(x); CREATE TABLE b(x); DROP TABLE a;"
                + "CREATE TABLE later(x UNIQUE, y); CREATE TRIGGER tr AFTER INSERT ON b BEGIN SELECT 1; END;"
                + "CREATE INDEX i ON later(y); CREATE TABLE last(x, UNIQUE(x)); INSERT INTO last VALUES (1); ANALYZE;"),
        Hazard("a string in double quotes in the schema") { connection in
            connection.allowDoubleQuotedStrings()
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT DEFAULT "it is", b CHECK (b <> "nothing")); INSERT INTO t(b) VALUES (1);
                CREATE INDEX i ON t(a) WHERE b > "0"; CREATE VIEW v AS SELECT "text" FROM t;
                CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET b = "text"; END;
                """)
        },
        Hazard(
            "a history of statistics",
            "CREATE TABLE t(a, b); CREATE INDEX i ON t(a);"
                + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT i % 7, i FROM n;"
                + "ANALYZE; INSERT INTO sqlite_stat1(rowid, tbl, idx, stat) VALUES (90, 'gone', NULL, 'no number');"),
        Hazard("statistics of another engine") { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(a); CREATE INDEX i ON t(a); CREATE TABLE s(tbl, idx, neq, nlt, ndlt, sample); "
                    + "INSERT INTO s(rowid, tbl, idx, neq, nlt, ndlt, sample) VALUES (4, 't', 'i', '1', '0', '0', x'0201'), "
                    + "(-1, 'gone', 'gone', '1', '0', '0', x'');")
            try connection.editSchema(
                "UPDATE sqlite_master SET name = 'sqlite_stat4', tbl_name = 'sqlite_stat4', "
                    + "sql = 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)' WHERE name = 's'")
        },
        Hazard("3,000 tables") { connection in
            try connection.transaction {
                for number in 0..<3_000 {
                    let key = number % 3 == 0 ? "a INTEGER PRIMARY KEY" : number % 3 == 1 ? "a" : "a PRIMARY KEY"
                    try connection.execute(
                        SQL(text: "CREATE TABLE t\(number)(\(key), b)\(number % 6 == 5 ? " WITHOUT ROWID" : "")"))
                    try connection.execute(SQL(text: "INSERT INTO t\(number)(a, b) VALUES (\(number), 'row')"))
                }
            }
        },
        Hazard("many small tables without rows, which leave free pages in the copy") { connection in
            try connection.transaction {
                for number in 0..<199 { try connection.execute("CREATE TABLE \(identifier: "t\(number)")(a)") }
            }
        },
        Hazard("tables that have the names of the copy's own") { connection in
            try connection.executeScript(
                text:
                    "CREATE TABLE cipherstore_root_0(a); CREATE TABLE cipherstore_root_1(a PRIMARY KEY) WITHOUT ROWID;"
                    + "CREATE TABLE cipherstore_format(a, b DEFAULT 1); INSERT INTO cipherstore_root_0 VALUES (1);"
                    + "CREATE TABLE legacy(a); CREATE TABLE main(a); CREATE TABLE temp(a); INSERT INTO main VALUES (3);"
            )
        },
    ]

    private static let headers: [Hazard] = [
        Hazard(
            "of which the last table was dropped, in UTF-16",
            "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t(a); DROP TABLE t;"),
        Hazard(
            "of which the last table was dropped, in the first schema format", "CREATE TABLE t(a); DROP TABLE t;"
        ) {
            try $0.useLegacyFileFormat()
        },
    ]

    private static let names: [Hazard] = [
        Hazard(
            "names of quotes, semicolons, keywords and nothing",
            """
            CREATE TABLE "a""b;--'[`"("select" TEXT, "it's" INT, "" BLOB, "a.b", [x y], "*"); CREATE TABLE "table"("from");
            INSERT INTO "a""b;--'[`"(rowid, "select", "") VALUES (-1, 'x', x'01'); INSERT INTO "table" VALUES (5);
            CREATE INDEX "i""x" ON "a""b;--'[`"("it's", ""); CREATE TABLE "sp ace\n"("\t" PRIMARY KEY); CREATE TABLE "("(")");
            INSERT INTO "(" VALUES (2); INSERT INTO "sp ace\n" VALUES ('v');
            """),
        Hazard("a table and a column without a name") { connection in
            try connection.executeScript(
                text: "CREATE TABLE \"\"(\"\", b); INSERT INTO \"\"(rowid, \"\", b) VALUES (-6, 1, 2), (8, 3, 4); "
                    + "CREATE TABLE k(\"\" PRIMARY KEY, b); INSERT INTO k VALUES ('a', 'b'); CREATE INDEX \" \" ON k(b);"
            )
        },
        Hazard("names that differ only in their Unicode form") { connection in
            let composed = "caf\u{e9}"
            let decomposed = "cafe\u{301}"
            for (number, name) in [composed, decomposed, "\u{301}", "x\"\u{301}", "\u{212a}", "rowi\u{fe0f}d"]
                .enumerated()
            {
                try connection.execute(
                    "CREATE TABLE \(identifier: name)(\(identifier: composed), \(identifier: decomposed), \"\u{301}\")")
                try connection.execute("INSERT INTO \(identifier: name) VALUES (\(number), 'second', 'third')")
                try connection.execute("DELETE FROM \(identifier: name) WHERE rowid > 5")
                try connection.execute(
                    "CREATE INDEX \(identifier: "i" + name) ON \(identifier: name)(\(identifier: decomposed))")
            }
        },
        Hazard("bare tables whose names differ only in their Unicode form") { connection in
            for (number, name) in ["caf\u{e9}", "cafe\u{301}"].enumerated() {
                try connection.execute("CREATE TABLE \(identifier: name)(\"a\u{30a}\", \"\u{e5}\")")
                try connection.execute(
                    "INSERT INTO \(identifier: name)(rowid, \"a\u{30a}\", \"\u{e5}\") VALUES (\(number * 9 - 4), \(number), 'x')"
                )
            }
        },
    ]

    private static let indexes: [Hazard] = [
        Hazard(
            "on expressions, partial, descending and with collations",
            """
            CREATE TABLE t(a TEXT, b TEXT COLLATE RTRIM, c); CREATE INDEX e ON t(lower(a), abs(c)); CREATE INDEX p ON t(b) WHERE c > 1;
            CREATE UNIQUE INDEX d ON t(c DESC, a COLLATE NOCASE); CREATE INDEX r ON t(b DESC); CREATE INDEX n ON t(a COLLATE NOCASE);
            INSERT INTO t(rowid, a, b, c) VALUES (-3, 'Ab', 'x  ', 1), (4, 'aB', 'x', 2), (9, NULL, 'y', NULL), (12, 'ß', '', 3);
            """),
        Hazard(
            "of the first schema format, where descending indexes ascend",
            "PRAGMA legacy_file_format = ON; CREATE TABLE t(a, b); CREATE INDEX d ON t(a DESC, b); "
                + "INSERT INTO t VALUES (1, 0), (2, 1), (3, 1), (NULL, 0), ('x', 1), (0, 0);"
        ) {
            try $0.useLegacyFileFormat()
        },
        Hazard(
            "of the third schema format",
            "CREATE TABLE t(a, b); CREATE INDEX d ON t(a DESC, b); INSERT INTO t VALUES (1, 0), (2, 1), (3, 1);"
                + "ALTER TABLE t ADD COLUMN c DEFAULT 5; INSERT INTO t VALUES (0, 1, 1);"
        ) {
            try $0.useLegacyFileFormat()
        },
        Hazard("with a function that only the app has", warns: true) { connection in
            try connection.executeScript(
                text:
                    "CREATE TABLE t(a, b); INSERT INTO t(rowid, a, b) VALUES (5, 1, 2), (-6, 3, 4); CREATE INDEX i ON t(abs(a)); "
                    + "CREATE INDEX p ON t(b) WHERE abs(a) > 1;")
            try connection.editSchema("UPDATE sqlite_master SET sql = replace(sql, 'abs', 'app_rank')")
        },
        Hazard("with a collation of the app", collations: [backwards]) { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT COLLATE backwards, b); CREATE INDEX i ON t(a); CREATE TABLE u(a TEXT COLLATE backwards UNIQUE);
                CREATE TABLE w(k TEXT COLLATE backwards PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX j ON w(b COLLATE backwards DESC);
                INSERT INTO t(rowid, a, b) VALUES (9, 'ab', 1), (3, 'ba', 2), (1, 'c', 3);
                INSERT INTO u SELECT a FROM t; INSERT INTO w SELECT a, b FROM t;
                """)
        },
        Hazard(
            "that miss entries, or have too many", warns: true
        ) { connection in
            try connection.executeScript(
                "CREATE TABLE t(a, b); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1, 2), (3, 4), (5, 6); CREATE INDEX j ON t(b);"
            )
            // The temporary condition excludes this row, so the statement adds no index entry for it.
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(a) WHERE a > 99' WHERE name = 'i'")
            try connection.execute("INSERT INTO t VALUES (7, 8)")
            try connection.editSchema("UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(a)' WHERE name = 'i'")
        },
        Hazard("of a constraint, with an empty text in place of NULL") { connection in
            try connection.executeScript("CREATE TABLE t(a UNIQUE, b); INSERT INTO t VALUES ('x', 1), ('y', 2)")
            try connection.editSchema("UPDATE sqlite_master SET sql = '' WHERE type = 'index'")
        },
        Hazard(
            "with a collation of the app that has the name of a built-in one",
            collations: [Collation(name: "nocase", compare: backwards.compare)]
        ) { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT COLLATE NOCASE UNIQUE, b); CREATE INDEX i ON t(b, a);
                CREATE TABLE w(a TEXT COLLATE NOCASE PRIMARY KEY, b) WITHOUT ROWID;
                INSERT INTO t VALUES ('ab', 1), ('ba', 1), ('ca', 2); INSERT INTO w SELECT * FROM t;
                """)
        },
    ]

    /// Sorts from the end of the text.
    static let backwards: Collation = Collation(name: "backwards") { left, right in
        let (left, right) = (left.reversed(), right.reversed())
        return left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
    }
}

extension Hazard {
    /// Makes a hazard with a setting of the engine that is set first.
    init(_ name: String, _ script: String, before: @escaping @Sendable (Connection) throws -> Void) {
        self.init(name) { connection in
            try before(connection)
            try connection.executeScript(text: script)
        }
    }
}
