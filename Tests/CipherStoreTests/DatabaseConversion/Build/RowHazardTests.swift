internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// Rows that a copy renumbers, converts, truncates or refuses.
struct RowHazardTests {
    @Test("Rows are converted with their rowids, storage classes and bytes", arguments: Self.hazards)
    func rows(hazard: Hazard) throws {
        try hazard.run()
    }

    static let hazards: [Hazard] = rowids + values + broken

    private static let rowids: [Hazard] = [
        Hazard(
            "rowids with gaps, negative and extreme, of a table without key and index",
            """
            CREATE TABLE t(a TEXT, b);
            INSERT INTO t(rowid, a, b) VALUES (-9223372036854775808, 'least', 1), (-5, 'negative', NULL), (0, 'zero', 2),
                (7, 'gap', x'00'), (4294967296, 'beyond 32 bits', 3.5), (9223372036854775807, 'greatest', 4);
            """),
        Hazard(
            "rowids of a table that was emptied in part",
            """
            CREATE TABLE t(a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i FROM n;
            DELETE FROM t WHERE rowid % 3 = 0 OR rowid BETWEEN 1000 AND 3000;
            """),
        Hazard(
            "rowids of a table with an index and without a key",
            "CREATE TABLE t(a, b); CREATE INDEX i ON t(b);"
                + "INSERT INTO t(rowid, a, b) VALUES (-3, 1, 2), (40, 3, 1), (41, 3, 1), (9223372036854775807, NULL, NULL);"
        ),
        Hazard(
            "rowids under an external-content full-text index",
            """
            CREATE TABLE doc(body TEXT);
            INSERT INTO doc(rowid, body) VALUES (3, 'alpha beta'), (90, 'beta gamma'), (-4, 'gamma delta');
            CREATE VIRTUAL TABLE ft USING fts4(content="doc", body);
            INSERT INTO ft(ft) VALUES ('rebuild');
            """),
        Hazard(
            "a column named rowid, and one named oid",
            "CREATE TABLE t(rowid, oid); INSERT INTO t(_rowid_, rowid, oid) VALUES (5, 'a', 1), (-8, 'b', 2);"),
        Hazard(
            "columns that take all three names of the rowid",
            "CREATE TABLE t(rowid, _rowid_ TEXT, oid); INSERT INTO t VALUES (1, 'x', NULL), (1, 'y', 2);"
                + "CREATE TABLE u(rowid, _rowid_, oid, PRIMARY KEY(rowid)); INSERT INTO u VALUES ('k', 1, 2), ('j', 3, 4);"
                + "CREATE TABLE v(ROWID INTEGER PRIMARY KEY, _Rowid_, Oid); INSERT INTO v VALUES (-9, 1, 2), (12, 3, 4);"
        ),
        Hazard(
            "sqlite_sequence with gaps, above the highest row, of several tables, and of none",
            """
            CREATE TABLE a(id INTEGER PRIMARY KEY AUTOINCREMENT, x);
            CREATE TABLE b(id INTEGER PRIMARY KEY AUTOINCREMENT, x);
            CREATE TABLE c(id INTEGER PRIMARY KEY AUTOINCREMENT, x);
            CREATE TABLE forgotten(id INTEGER PRIMARY KEY AUTOINCREMENT, x);
            INSERT INTO a VALUES (1, 1), (900, 2); DELETE FROM a WHERE id = 900;
            INSERT INTO b VALUES (5, 1); UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'b';
            INSERT INTO forgotten VALUES (3, 3); DELETE FROM sqlite_sequence WHERE name = 'forgotten';
            INSERT INTO sqlite_sequence(rowid, name, seq) VALUES (77, 'no such table', 'not a number');
            """),
        Hazard("an AUTOINCREMENT table in a database without sqlite_sequence") { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a UNIQUE); INSERT INTO t VALUES (3, 'x'), (9, 'y');
                CREATE INDEX i ON t(a DESC, id); DELETE FROM sqlite_sequence;
                """)
            try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'sqlite_sequence'")
        },
    ]

    /// Longer than the pieces that are compared.
    private static let long = "4194305 + "

    private static let values: [Hazard] = [
        Hazard(
            "values of megabytes: first, side by side, and among thousands of short rows",
            """
            CREATE TABLE t(a TEXT, b BLOB, c);
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i, x'00', i FROM n;
            UPDATE t SET b = zeroblob(\(long)1) WHERE rowid = 1500;
            UPDATE t SET a = replace(substr(hex(zeroblob(\(long)2)), 1, 4194306), '00', 'é0'), c = 0.5 WHERE rowid = 1501;
            INSERT INTO t(rowid, b) VALUES (-9223372036854775808, zeroblob(\(long)3));
            CREATE TABLE only(a); INSERT INTO only VALUES (randomblob(\(long)5));
            CREATE TABLE indexed(a TEXT UNIQUE, b); INSERT INTO indexed VALUES (CAST(zeroblob(\(long)6) AS TEXT), 1);
            CREATE TABLE keyed(k PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO keyed VALUES (1, zeroblob(\(long)7));
            ALTER TABLE only ADD COLUMN later TEXT DEFAULT 'added';
            """),
        Hazard(
            "integers, reals and their edges in columns of every affinity",
            """
            CREATE TABLE t(n NUMERIC, i INTEGER, r REAL, t TEXT, b BLOB, x);
            INSERT INTO t VALUES (9223372036854775807, -9223372036854775808, 9223372036854775807, 1, 1, 1);
            INSERT INTO t VALUES (-0.0, -0.0, -0.0, -0.0, -0.0, -0.0);
            INSERT INTO t VALUES (9e999, -9e999, 9e999, 9e999, 9e999, -9e999);
            INSERT INTO t VALUES (5e-324, 1.7976931348623157e308, 1.0, 1.0, 1.0, 9007199254740993);
            INSERT INTO t VALUES (NULL, '12 monkeys', '1e3', 0.1, x'', '');
            INSERT INTO t VALUES (0, 0, 0, '', zeroblob(0), NULL);
            """),
        Hazard(
            "text with NUL characters, invalid UTF-8, and blobs that are empty or large",
            """
            CREATE TABLE t(a TEXT, b BLOB);
            INSERT INTO t VALUES (CAST(x'610062' AS TEXT), x'00'), (CAST(x'ff80c3' AS TEXT), x''),
                (CAST(x'eda080' AS TEXT), NULL), ('', zeroblob(70000)), (NULL, CAST('text' AS BLOB)),
                (CAST(x'00' AS TEXT), x'610062');
            CREATE TABLE k(a TEXT PRIMARY KEY, b); INSERT INTO k SELECT a, b FROM t;
            """),
        Hazard(
            "UTF-16 little-endian with unpaired surrogates",
            utf16("UTF-16le", unpaired: "CAST(x'00d8' AS TEXT), CAST(x'61000000620000dc' AS TEXT)")),
        Hazard(
            "UTF-16 big-endian with unpaired surrogates",
            utf16("UTF-16be", unpaired: "CAST(x'd800' AS TEXT), CAST(x'006100000062dc00' AS TEXT)")),
        Hazard(
            "short records of columns that were added later",
            """
            CREATE TABLE t(a); CREATE TABLE k(a INTEGER PRIMARY KEY, b);
            INSERT INTO t VALUES (1), (2); INSERT INTO k VALUES (1, 1), (7, 2);
            ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'later'; ALTER TABLE t ADD COLUMN c DEFAULT NULL;
            ALTER TABLE t ADD COLUMN d REAL NOT NULL DEFAULT 5; ALTER TABLE k ADD COLUMN c BLOB DEFAULT x'0102';
            ALTER TABLE k ADD COLUMN d; INSERT INTO t(a) VALUES (3); INSERT INTO k(a, d) VALUES (9, 9);
            """),
        Hazard("2,000 columns and no key") { connection in
            let columns = (0..<2_000).map { "c\($0)" }.joined(separator: ", ")
            try connection.execute(SQL(text: "CREATE TABLE t(\(columns))"))
            try connection.execute(
                "INSERT INTO t(rowid, c0, c1998, c1999) VALUES (-7, 'first', 'last but one', 'last')")
            try connection.execute("INSERT INTO t(rowid, c5) VALUES (70, 'a')")
        },
        Hazard("2,000 columns with a key") { connection in
            let columns = (1..<2_000).map { "c\($0) INTEGER" }.joined(separator: ", ")
            try connection.execute(SQL(text: "CREATE TABLE t(c0 TEXT PRIMARY KEY, \(columns))"))
            try connection.execute("INSERT INTO t(rowid, c0, c1999) VALUES (-7, 'first', 5), (12, NULL, 'text')")
        },
    ]

    private static let broken: [Hazard] = [
        Hazard("rows that break CHECK, NOT NULL, UNIQUE-free types and foreign keys", warns: true) {
            connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a, b TEXT); CREATE TABLE k(id INTEGER PRIMARY KEY, a, b);
                CREATE TABLE p(id INTEGER PRIMARY KEY);
                INSERT INTO t(rowid, a, b) VALUES (4, NULL, 1), (9, -1, NULL); INSERT INTO k VALUES (2, NULL, 77), (5, -1, 78);
                """)
            try connection.editSchema(
                """
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(a NOT NULL CHECK (a > 0), b TEXT NOT NULL)' WHERE name = 't';
                UPDATE sqlite_master SET sql = 'CREATE TABLE k(id INTEGER PRIMARY KEY, a NOT NULL CHECK (a > 0), '
                    || 'b REFERENCES p(id) ON DELETE CASCADE)' WHERE name = 'k'
                """)
        },
        Hazard("values that the declared types would convert now") { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(a, b, c); INSERT INTO t VALUES ('12', 1.5, 5), ('1e3', '7', x'31');"
                    + "CREATE TABLE k(a, b, c, UNIQUE(c)); INSERT INTO k VALUES ('12', 1.5, 5), ('1e3', '7', x'31');")
            try connection.editSchema(
                """
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(a INTEGER, b TEXT, c REAL)' WHERE name = 't';
                UPDATE sqlite_master SET sql = 'CREATE TABLE k(a INTEGER, b TEXT, c, UNIQUE(c))' WHERE name = 'k'
                """)
        },
        Hazard(
            "rowids with gaps under a CHECK and a key that is no rowid",
            "CREATE TABLE t(a TEXT PRIMARY KEY, b CHECK (b > 0)); CREATE TABLE u(a UNIQUE CHECK (length(a) < 9), b DEFAULT 5);"
                + "INSERT INTO t(rowid, a, b) VALUES (-7, 'x', 1), (50, 'y', 2), (9000, 'z', 3);"
                + "INSERT INTO u(rowid, a) VALUES (-9223372036854775808, 'x'), (77, 'y'), (8, NULL), (4, NULL);"),
        Hazard("a CHECK with a function that only the app has") { connection in
            try connection.executeScript(
                "CREATE TABLE t(a); CREATE TABLE k(a PRIMARY KEY, b); INSERT INTO t VALUES (1)")
            try connection.execute("INSERT INTO k VALUES (1, 2)")
            try connection.editSchema(
                """
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(a CHECK (app_valid(a)))' WHERE name = 't';
                UPDATE sqlite_master SET sql = 'CREATE TABLE k(a PRIMARY KEY, b, CHECK (app_valid(a, b) > 1))' WHERE name = 'k'
                """)
        },
    ]

    private static func utf16(_ encoding: String, unpaired: String) -> String {
        """
        PRAGMA encoding = '\(encoding)';
        CREATE TABLE t(a TEXT, b TEXT); INSERT INTO t VALUES (\(unpaired)), ('你好 👋🏽', ''), ('a', NULL);
        CREATE TABLE k(a TEXT PRIMARY KEY COLLATE NOCASE, b TEXT) WITHOUT ROWID; INSERT INTO k VALUES (\(unpaired)), ('É', 'é');
        CREATE INDEX i ON t(b, a); CREATE TABLE s(id INTEGER PRIMARY KEY AUTOINCREMENT, "größe" TEXT DEFAULT 'ü');
        INSERT INTO s DEFAULT VALUES; CREATE VIEW "vü" AS SELECT "größe" FROM s;
        """
    }
}

/// Features of newer engines only.
struct NewerEngineHazardTests {
    @Test(
        "Generated columns are converted, stored or computed", .enabled(if: Engine.current.hasGeneratedColumns),
        arguments: Self.generated)
    func generatedColumns(hazard: Hazard) throws {
        try hazard.run()
    }

    @Test("STRICT tables are converted", .enabled(if: Engine.current.hasStrictTables), arguments: Self.strict)
    func strictTables(hazard: Hazard) throws {
        try hazard.run()
    }

    private static let generated: [Hazard] = [
        Hazard(
            "a bare table",
            "CREATE TABLE t(a, v AS (a * 2) VIRTUAL, s TEXT AS (a || '!') STORED, z);"
                + "INSERT INTO t(rowid, a, z) VALUES (-4, 5, 6), (80, NULL, 'x');"),
        Hazard(
            "with a key and indexes",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, v INT AS (a * 2), s AS (a || '!') STORED UNIQUE, z);"
                + "INSERT INTO t(id, a, z) VALUES (-4, 5, 6), (80, 7, 'x'); CREATE INDEX i ON t(v); CREATE INDEX j ON t(s, v);"
        ),
        Hazard(
            "with a conflict clause of the key",
            ["REPLACE", "IGNORE", "FAIL", "ABORT", "ROLLBACK"].map { clause in
                "CREATE TABLE \(clause.lowercased())(a, id INTEGER PRIMARY KEY ON CONFLICT \(clause), v AS (id * 2), "
                    + "s TEXT AS (hex(a)) STORED); INSERT INTO \(clause.lowercased())(a, id) VALUES ('x', 3), ('y', -1);"
            }.joined()),
        Hazard(
            "with an index alone",
            "CREATE TABLE t(a, v AS (length(a)), z); INSERT INTO t(rowid, a, z) VALUES (9, 'abc', 1), (-2, 'd', 2);"
                + "CREATE INDEX i ON t(v, z);"),
        Hazard(
            "in a table WITHOUT ROWID",
            "CREATE TABLE t(v AS (a + 1), b, s AS (a - 1) STORED, a, PRIMARY KEY(a DESC, b COLLATE NOCASE)) WITHOUT ROWID;"
                + "INSERT INTO t(a, b) VALUES (3, 'x'), (-1, 'Y'), (-1, 'a'); CREATE INDEX i ON t(v);"),
        Hazard("stored values that their expression would not give", computed: false) { connection in
            try connection.executeScript("CREATE TABLE t(a, s AS (a + 1) STORED); INSERT INTO t(a) VALUES (3), (4)")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE TABLE t(a, s AS (app_hash(a)) STORED)' WHERE name = 't'")
        },
        Hazard("computed by a function that only the app has", computed: false) { connection in
            try connection.executeScript("CREATE TABLE t(a, v AS (a + 1)); INSERT INTO t(a) VALUES (3), (4)")
            try connection.executeScript(
                "CREATE TABLE k(a PRIMARY KEY, v AS (a + 1)); INSERT INTO k(a) VALUES (3), (4)")
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = replace(sql, '(a + 1)', '(app_hash(a))')")
        },
        Hazard("computed by a function that only the app has, and indexed", computed: false, warns: true) {
            connection in
            try connection.executeScript(
                text:
                    "CREATE TABLE t(id INTEGER PRIMARY KEY, a, v AS (a + 1)); INSERT INTO t(id, a) VALUES (-3, 3), (8, 4); "
                    + "CREATE INDEX i ON t(v)")
            try connection.editSchema("UPDATE sqlite_master SET sql = replace(sql, '(a + 1)', '(app_hash(a))')")
        },
    ]

    @Test(
        "An index that needs the app's missing function is refused with a typed error, and the file stays unchanged",
        .enabled(if: Engine.current.hasGeneratedColumns))
    func absentFunction() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                "CREATE TABLE t(a, v AS (a + 1)); INSERT INTO t(a) VALUES (3), (4); CREATE INDEX i ON t(v)")
            try connection.editSchema("UPDATE sqlite_master SET sql = replace(sql, '(a + 1)', '(app_hash(a))')")
        }
        let before = try file.digest()
        let error = try storeError { try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run() }
        #expect(error?.code == .missingFunction)
        #expect(try file.digest() == before)
    }

    private static let strict: [Hazard] = [
        Hazard(
            "of every type",
            "CREATE TABLE t(i INT, r REAL, s TEXT, b BLOB, x ANY) STRICT;"
                + "INSERT INTO t(rowid, i, r, s, b, x) VALUES (-3, 1, 2, 'a', x'00', '007'), (5, NULL, 1e999, '', x'', 7);"
                + "CREATE TABLE w(k TEXT PRIMARY KEY, x ANY) STRICT, WITHOUT ROWID; INSERT INTO w VALUES ('a', '1'), ('b', 1);"
        ),
        Hazard("with rows that break the types", warns: true) { connection in
            try connection.executeScript(
                text: "CREATE TABLE t(i, r, s); INSERT INTO t VALUES ('text', x'00', 5); "
                    + "CREATE TABLE k(i PRIMARY KEY, r, s); INSERT INTO k VALUES ('text', x'00', 5)")
            try connection.editSchema(
                """
                UPDATE sqlite_master SET sql = 'CREATE TABLE t(i INT, r REAL, s TEXT) STRICT' WHERE name = 't';
                UPDATE sqlite_master SET sql = 'CREATE TABLE k(i ANY PRIMARY KEY, r INT, s TEXT) STRICT' WHERE name = 'k'
                """)
        },
    ]
}
