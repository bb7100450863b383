internal import CipherDatabaseConversion
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Whether each recovered value is the one that SQLite reads from the database before its recovery.
@Suite struct RecoveredValuesTests {
    /// Recovers an intact database and compares every row, rowid and value with what SQLite reads from it.
    private func check(_ script: String, before: String = "", sourceLocation: SourceLocation = #_sourceLocation) throws
    {
        let fixture = try RecoveryFixture(script: script, before: before)
        let report = try fixture.recover()
        #expect(report.complete, "\(report)", sourceLocation: sourceLocation)
        let original = try Connection(path: fixture.path, mode: .readOnly)
        defer { original.close() }
        let recovered = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { recovered.close() }
        let (before, after) = try (lines(original), lines(recovered))
        #expect(before.count > 5, sourceLocation: sourceLocation)
        let changed = Set(before).subtracting(after).sorted()
        #expect(before == after, "\(changed.prefix(5))", sourceLocation: sourceLocation)
        // Reads each index too, and complains about the values that the original's definitions forbid.
        let complaints = try original.values(String.self, "PRAGMA integrity_check")
        #expect(
            try recovered.values(String.self, "PRAGMA integrity_check") == complaints, sourceLocation: sourceLocation)
    }

    /// Returns all rows, and the entries of the schema, whose order may change.
    private func lines(_ connection: Connection) throws -> [String] {
        try DatabaseDump(connection).lines.filter { !$0.hasPrefix("schema") }.sorted()
            + connection.values(
                String.self,
                "SELECT quote(type) || quote(name) || quote(tbl_name) || quote(sql) FROM sqlite_master ORDER BY 1")
    }

    // MARK: Defaults

    private static let defaults = [
        "1.10", "100.00", "1e3", "-1.50", "+1.50", "0.1", "5.", "00012", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "-9223372036854775809", "0x10", "-0x10", "0xFFFFFFFFFFFFFFFF", "1e400", "-1e400",
        "'1.10'", "'  12 '", "'1e3'", "'0x10'", "''", "'text'", "\"quoted\"", "bare", "x''", "x'31'", "X'00ff'", "NULL",
        "TRUE", "FALSE", "(1.10)", "(-1.50)", "('1.10')", "(1 + 2)", "(1.10 || '')", "(CAST(1.10 AS TEXT))",
        "(CAST('12' AS INTEGER))", "CURRENT_TIMESTAMP", "('a' COLLATE NOCASE)", "(- '5')", "(+'5')", "(abs(-5))",
        "(- -9223372036854775808)", "(NULL)", "-1", "- 1.10 /* a comment */", "(1 NOT NULL)",
    ]
    private static let types = ["", "TEXT", "VARCHAR(10)", "INTEGER", "REAL", "NUMERIC", "BLOB", "DECIMAL(10,2)"]
    /// Definitions of tables before the columns are added, with their rows.
    private static let kinds = [
        ("(k)", "(7)", ""), ("(k INTEGER PRIMARY KEY, l TEXT)", "(7, 'l')", ""),
        ("(k TEXT PRIMARY KEY, l)", "('k', 2.5)", " WITHOUT ROWID"),
        ("(k, l TEXT DEFAULT 2.50)", "(1, 2)", ""),
    ]

    @Test("A column that was added after its rows keeps the default that SQLite reads from them", arguments: types)
    func defaults(type: String) throws {
        var script = ""
        for (number, kind) in Self.kinds.enumerated() {
            let (table, (columns, row, end)) = ("t\(number)", kind)
            let added = Self.defaults.enumerated().map { ", d\($0) \(type) DEFAULT \($1)\n" }.joined()
            let definition = "CREATE TABLE \(table)\(columns.dropLast())\(added))\(end)"
            // ALTER TABLE refuses some of the defaults, but files with them exist.
            script += """
                CREATE TABLE \(table)\(columns)\(end); INSERT INTO \(table) VALUES \(row);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_master SET sql = '\(definition.replacing("'", with: "''"))' WHERE name = '\(table)';
                PRAGMA writable_schema = OFF;

                """
        }
        try check(script)
    }

    @Test(
        "A default whose bytes depend on the encoding, or that is not text in it, is the one that SQLite reads",
        arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func encodedDefaults(encoding: String) throws {
        var defaults = [
            "(CAST('AB' AS BLOB))", "(CAST(1 AS BLOB))", "(CAST(1.5 AS BLOB))", "(CAST('é' AS BLOB))", "'é'",
        ]
        // In UTF-16 databases, SQLite 3.15 takes these bytes for UTF-8 in some statements and for UTF-16 in others.
        if encoding == "UTF-8" || Engine.current.cipherMajor >= 4 {
            defaults += ["(CAST(x'ff41' AS TEXT))", "(CAST(x'41ff42d8' AS TEXT))"]
        }
        let added = defaults.enumerated().map { "ALTER TABLE t ADD COLUMN d\($0) DEFAULT \($1);" }.joined()
        try check(
            "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3), (4), (5), (6);" + added,
            before: "PRAGMA encoding = '\(encoding)';")
    }

    @Test("A default that is not valid UTF-8 is recovered byte by byte")
    func defaultBytes() throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD COLUMN b DEFAULT 'M#ller'; "
                + "ALTER TABLE t ADD COLUMN c DEFAULT bare")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let place = try #require(data.range(of: Data("M#ller".utf8)))
        data[place.lowerBound + 1] = 0xfc
        try data.write(to: URL(filePath: fixture.path))
        #expect(try fixture.recover().complete)
        let recovered = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { recovered.close() }
        #expect(
            try recovered.values(String.self, "SELECT hex(b) || c FROM t")
                == ["4DFC6C6C6572bare", "4DFC6C6C6572bare"])
    }

    @Test(
        "A column of the type ANY in a STRICT table keeps its default as it is",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_037_000))
    func strictDefaults() throws {
        let added = ["1.0", "'5'", "1e3", "0.0", "'x'", "x'31'", "NULL"].enumerated().flatMap { number, value in
            ["ANY", "TEXT", "BLOB"].map { "ALTER TABLE t ADD COLUMN \($0)\(number) \($0) DEFAULT \(value);" }
        }
        let possible = added.filter {
            $0.contains("ANY") || $0.contains("NULL") || $0.contains("BLOB") == $0.contains("x'31'")
        }
        try check(
            "CREATE TABLE t(a INTEGER PRIMARY KEY) STRICT; INSERT INTO t VALUES (1), (2), (3), (4), (5), (6);"
                + possible.joined())
    }

    // MARK: Keys

    @Test("The key of a WITHOUT ROWID table ends the entries of a constraint's index in ascending order")
    func descendingKeys() throws {
        try check(
            """
            CREATE TABLE t(a, b, c UNIQUE, PRIMARY KEY(a DESC, b)) WITHOUT ROWID;
            INSERT INTO t VALUES (1, 1, NULL), (2, 1, NULL), (3, 2, NULL), (1, 2, 5), (2, 0, 6);
            CREATE INDEX t_c ON t(c); CREATE INDEX t_b ON t(b DESC);
            """)
    }

    @Test("A key whose collations differ from its columns' is recovered", arguments: ["BINARY", "NOCASE", "RTRIM"])
    func collations(column: String) throws {
        var script = ""
        for (number, key) in ["BINARY", "NOCASE", "RTRIM"].enumerated() {
            for (place, order) in ["", " DESC"].enumerated() {
                let suffix = "\(number)_\(place)"
                script += """
                    CREATE TABLE one\(suffix)(a TEXT COLLATE \(column), b, PRIMARY KEY(a COLLATE \(key)\(order))) WITHOUT ROWID;
                    INSERT INTO one\(suffix) VALUES ('a', 1), ('b ', 2), ('C', 3), ('x''y', 4);
                    INSERT OR IGNORE INTO one\(suffix) VALUES ('A', 5), ('b', 6), ('c ', 7);
                    CREATE TABLE two\(suffix)(b, a TEXT COLLATE \(column), c,
                        PRIMARY KEY(a COLLATE \(key)\(order), c, a COLLATE \(column), b)) WITHOUT ROWID;
                    INSERT INTO two\(suffix) VALUES (1, 'a', 0), (1, 'b ', 0), (2, 'C', 1), (3, 'C', 1);
                    INSERT OR IGNORE INTO two\(suffix) VALUES (1, 'A', 0), (1, 'b', 0), (2, 'c ', 1);
                    CREATE TABLE three\(suffix)(a TEXT COLLATE \(column), b, UNIQUE(a COLLATE \(key)\(order)));
                    INSERT OR IGNORE INTO three\(suffix) VALUES ('a', 1), ('A', 1), ('b ', 2), ('b', 2);
                    CREATE INDEX three\(suffix)_b ON three\(suffix)(b, a COLLATE \(key)\(order));

                    """
            }
        }
        try check(script)
    }

    @Test("A key whose column got another type later is recovered")
    func changedType() throws {
        try check(
            """
            CREATE TABLE t(a TEXT, b, PRIMARY KEY(a)) WITHOUT ROWID; INSERT INTO t VALUES ('1', 1), ('02', 2), ('x', 3);
            CREATE TABLE u(a, b TEXT, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT INTO u VALUES (1, '1'), (2, '02');
            CREATE TABLE w(a, c, PRIMARY KEY(a)) WITHOUT ROWID; INSERT INTO w VALUES (1, 'one'), ('1', 'text'), ('2', 2);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(
                replace(replace(sql, 'a TEXT', 'a INTEGER'), '(a, b TEXT', '(a TEXT, b INTEGER'), '(a, c', '(a TEXT, c');
            PRAGMA writable_schema = OFF;
            """)
    }

    // SQLite 3.15 stores the column once.
    @Test(
        "A row whose two copies of a key column differ is set aside", .enabled(if: Engine.current.cipherMajor >= 4))
    func differentCopies() throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a TEXT, b, PRIMARY KEY(a COLLATE NOCASE, a)) WITHOUT ROWID; "
                + "INSERT INTO t VALUES ('first', 1), ('second', 2), ('third', 3)")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        let place = try #require(data.range(of: Data("secondsecond".utf8)))
        data[place.lowerBound] ^= 2
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(!report.complete && report.tables.first { $0.name == "t" }?.rows == 2, "\(report)")
    }

    @Test("A value that ends with zeros, or consists of them, is recovered")
    func zeros() throws {
        try check(
            """
            CREATE TABLE t(a, b); INSERT INTO t VALUES (zeroblob(5000), ''), (zeroblob(5000), NULL), ('x', zeroblob(9000)),
                (CAST(zeroblob(5000) AS TEXT), 1), (CAST(zeroblob(9000) AS TEXT), ''), (x'01' || zeroblob(3000), x'');
            """)
    }

    // MARK: Counters

    @Test("A counter of AUTOINCREMENT that the app deleted is not made again")
    func deletedCounter() throws {
        try check(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO t(a) VALUES (1), (2), (3);
            CREATE TABLE u(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO u(a) VALUES (1), (2);
            DELETE FROM sqlite_sequence WHERE name = 't';
            """)
    }

    // MARK: Computed columns

    @Test(
        "A UNIQUE constraint that names a computed column is recovered with its index",
        .enabled(if: Engine.current.hasGeneratedColumns), arguments: ["VIRTUAL", "STORED"])
    func computed(kind: String) throws {
        try check(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b AS (lower(a)) \(kind) UNIQUE, c AS (length(a)) \(kind),
                UNIQUE(c, a COLLATE NOCASE), UNIQUE(id, b));
            INSERT INTO t(a) VALUES ('One'), ('two'), (NULL), ('three ');
            CREATE TABLE k(a TEXT, n INT AS (length(a)) \(kind), b TEXT, u AS (a || b) \(kind) UNIQUE, PRIMARY KEY(b, a))
                WITHOUT ROWID;
            INSERT INTO k(a, b) VALUES ('x', 'y'), ('y', 'x'); ANALYZE;
            CREATE INDEX t_c ON t(c); CREATE INDEX t_part ON t(b) WHERE c > 3; CREATE INDEX k_n ON k(n, a);
            """)
    }

    // MARK: The header

    @Test("If only the beginning of the header is damaged, its other fields are kept", arguments: [0, 1, 2])
    func header(autoVacuum: Int) throws {
        let fixture = try RecoveryFixture(before: "PRAGMA auto_vacuum = \(autoVacuum); PRAGMA encoding = 'UTF-16le';")
        var data = try Data(contentsOf: URL(filePath: fixture.path))
        data.replaceSubrange(0..<16, with: (0..<16).map { UInt8($0 * 13 + 1) })
        try data.write(to: URL(filePath: fixture.path))
        let report = try fixture.recover()
        #expect(report.complete && !report.notes.isEmpty, "\(report)")
        try fixture.check(lost: [])
        let recovered = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { recovered.close() }
        let numbers = ["user_version": 17, "application_id": 5, "auto_vacuum": autoVacuum]
        for (field, number) in numbers {
            #expect(try recovered.value(Int.self, SQL(text: "PRAGMA \(field)")) == number, "\(field)")
        }
        #expect(try recovered.value(String.self, "PRAGMA encoding") == "UTF-16le")
    }

    // MARK: Texts

    @Test(
        "Every special character is recovered in every encoding", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
    func texts(encoding: String) throws {
        let units = [
            "feff", "fffe", "feff0041", "fffe0041", "fefffeff", "ffff", "fffd", "d83dde00", "d83d", "de00", "0041d83d",
            "0301", "00410301", "200b", "202e", "0000", "00410000", "0085", "2028", "dbffdfff", "007f", "0080", "07ff",
            "0800",
        ]
        let isBig = encoding == "UTF-16be"
        let rows = units.map { unit -> String in
            guard encoding != "UTF-8" else {
                let numbers = stride(from: 0, to: unit.count, by: 4).map { start -> UInt16 in
                    let from = unit.index(unit.startIndex, offsetBy: start)
                    return UInt16(unit[from..<unit.index(from, offsetBy: 4)], radix: 16) ?? 0
                }
                let text = String(decoding: numbers, as: UTF16.self)
                return "(CAST(x'" + text.utf8.map { String(format: "%02x", $0) }.joined() + "' AS TEXT))"
            }
            let bytes = isBig ? unit : Self.swapped(unit)
            return "(CAST(x'\(bytes)' AS TEXT))"
        }
        try check(
            """
            CREATE TABLE t(a TEXT); INSERT INTO t VALUES \(rows.joined(separator: ", "));
            CREATE INDEX t_a ON t(a);
            CREATE TABLE k(a TEXT PRIMARY KEY) WITHOUT ROWID; INSERT OR IGNORE INTO k SELECT a FROM t;
            CREATE TABLE u(a UNIQUE, b); INSERT OR IGNORE INTO u SELECT a, a || a FROM t;
            """, before: "PRAGMA encoding = '\(encoding)';")
    }

    /// Returns hexadecimal digits with the bytes of each pair in the other order.
    private static func swapped(_ digits: String) -> String {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 4).map {
            String(digits[($0 + 2)..<($0 + 4)] + digits[$0..<($0 + 2)])
        }.joined()
    }

    // MARK: Definitions of other engines

    @Test(
        "A STRICT column whose default has another type is read as SQLite reads it",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_037_000),
        arguments: ["BLOB DEFAULT 7", "INT DEFAULT 1.5", "INTEGER DEFAULT ''a''", "ANY DEFAULT 1.10", "TEXT DEFAULT 7"])
    func strictDefault(column: String) throws {
        try check(
            """
            CREATE TABLE t(k INTEGER) STRICT; INSERT INTO t VALUES (1), (2), (3), (4), (5), (6);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = 'CREATE TABLE t(k INTEGER, b \(column)) STRICT'
            """)
    }

    @Test("A long definition in UTF-16 is read", arguments: ["UTF-16le", "UTF-16be", "UTF-8"])
    func longDefinition(encoding: String) throws {
        let comment = "/* \(String(repeating: "c", count: 70_000)) */"
        try check(
            """
            CREATE TABLE t(a \(comment), b DEFAULT 'x'); CREATE VIEW v AS SELECT \(comment) 1;
            INSERT INTO t(a) VALUES (1), (2), (3), (4), (5), (6);
            """, before: "PRAGMA encoding = '\(encoding)';")
    }

    @Test("A database without tables keeps its encoding", arguments: ["CREATE VIEW v AS SELECT 'a'", "SELECT 1"])
    func withoutTables(script: String) throws {
        let fixture = try RecoveryFixture(
            script: "CREATE TABLE t(a); DROP TABLE t; " + script, before: "PRAGMA encoding = 'UTF-16le';")
        #expect(try fixture.recover().complete)
        let recovered = try Connection(
            path: fixture.output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { recovered.close() }
        #expect(try recovered.value(String.self, "PRAGMA encoding") == "UTF-16le")
        #expect(try recovered.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test(
        "A text whose last page was overwritten with zeros is set aside", arguments: ["UTF-16le", "UTF-16be", "UTF-8"])
    func zeroedText(encoding: String) throws {
        let fixture = try RecoveryFixture(
            pageSize: 512, script: "CREATE TABLE t(a); INSERT INTO t VALUES (hex(zeroblob(900))), (hex(zeroblob(800)))",
            before: "PRAGMA encoding = '\(encoding)';")
        let pages = try #require(fixture.places.pages.first { $0.key.table == "t" && $0.key.key == "1" }?.value)
        try fixture.damage([#require(pages.max())])
        #expect(try !fixture.recover().complete)
    }
}
