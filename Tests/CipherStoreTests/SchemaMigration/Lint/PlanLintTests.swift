internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

struct PlanLintTests {
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        var wanted = "CREATE TABLE t(a TEXT)"
        var index: String?
        var finding: String
        /// A table that must stay.
        var parent: String? { script.contains("p(k PRIMARY KEY)") ? "CREATE TABLE p(k PRIMARY KEY)" : nil }
        var severity = Plan.Finding.Severity.losesData
    }

    static let losses = [
        Change(
            testDescription: "a column with values",
            script: "CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES (1, 2), (3, NULL), (4, 5)",
            finding: "the migration drops 2 non-NULL values of t.b"),
        Change(
            testDescription: "a column without", script: "CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES (1, NULL)",
            finding: "the migration drops t.b, which contains no values", severity: .removesSchema),
        Change(
            testDescription: "a table with rows",
            script: "CREATE TABLE t(a TEXT); CREATE TABLE u(x); INSERT INTO u VALUES (1)",
            finding: "the migration drops u, which contains 1 row"),
        Change(
            testDescription: "text that is another as a number",
            script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('007'), ('7'), ('x'), (NULL), (x'00')",
            wanted: "CREATE TABLE t(a INTEGER)", finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "text that is a large whole float",
            script: """
                CREATE TABLE t(a TEXT);
                INSERT INTO t VALUES ('5.0e+14'), ('5.0e+15'), ('-1.0e+16'), ('9.2e+18'), ('9.3e+18'), ('1.5'), ('7');
                """,
            wanted: "CREATE TABLE t(a INTEGER)", finding: "the migration alters 4 values of t.a"),
        Change(
            testDescription: "text that is a large whole float, in a column that becomes NUMERIC",
            script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('5.0e+15'), ('9.3e+18'), ('1.5'), ('7')",
            wanted: "CREATE TABLE t(a NUMERIC)", finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "numbers among texts in a column that kept both apart",
            script: "CREATE TABLE t(a); INSERT INTO t VALUES (7), ('7'), ('x'), (NULL), (x'00')",
            finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "a large number that a float cannot hold",
            script: "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES (9007199254740993), (9007199254740992), (1)",
            wanted: "CREATE TABLE t(a REAL)", finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "text with more digits than a float holds",
            script:
                "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('7205759403792793601'), ('7'), ('0.5'), ('x'), (NULL)",
            wanted: "CREATE TABLE t(a REAL)", finding: "the migration alters 2 values of t.a"),
        Change(
            testDescription: "text with trailing digits that a float does not show",
            script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('5551234'), ('0.5'), ('x'), (NULL)",
            wanted: "CREATE TABLE t(a REAL)", finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "whole numbers in a column that kept them apart from floats",
            script: "CREATE TABLE t(a); INSERT INTO t VALUES (5), (5.0), (5.5), ('x'), (NULL), (x'00')",
            wanted: "CREATE TABLE t(a REAL)", finding: "the migration alters 1 value of t.a"),
        Change(
            testDescription: "whole floats in a column that kept them apart from whole numbers",
            script: "CREATE TABLE t(a); INSERT INTO t VALUES (5), (5.0), (5.5), (1e300), ('x'), (NULL), (x'00')",
            wanted: "CREATE TABLE t(a INTEGER)", finding: "the migration alters 1 value of t.a"),
    ]

    @Test(
        "A plan's effect on values is withheld by default, applied if allowed, and refused with all findings",
        arguments: losses)
    func followsPolicy(change: Change) throws {
        func fixture() throws -> MigrationFixture {
            try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), change.script)
        }
        let withheld = try fixture()
        let content = try withheld.content().filter { !$0.contains("user_version") }
        let report = try withheld.launch(WantedSource(statements: [change.wanted]))
        #expect(report.titles.isEmpty)
        #expect(report.withheld.count == 1)
        #expect(report.findings.isEmpty)
        #expect(try Set(content).isSubset(of: withheld.content()))
        #expect(try withheld.launch(WantedSource(statements: [change.wanted])).applied.isEmpty)

        let refused = try fixture()
        let before = try refused.bytes()
        let error = try storeError {
            try refused.launch(WantedSource(statements: [change.wanted], policy: .refuse))
        }
        #expect(error?.code == .destructiveChanges)
        #expect(error?.detail.contains(change.finding) == true)
        #expect(try refused.bytes() == before)

        let allowed = try fixture()
        let done = try allowed.launch(WantedSource(statements: [change.wanted], policy: .allow))
        #expect(done.findings.map(\.severity) == [change.severity])
        #expect(done.findings.first?.message.hasPrefix(change.finding) == true)
        #expect(done.applied.first?.risk == (change.severity == .losesData ? .losesData : .removesSchema))
        #expect(done.withheld.isEmpty)
        #expect(try allowed.launch(WantedSource(statements: [change.wanted], policy: .allow)).applied.isEmpty)
    }

    @Test("A plan drops an undeclared unique index together with its column, and names both")
    func dropsIndexWithColumn() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, b, c); CREATE UNIQUE INDEX i ON t(c, b); INSERT INTO t VALUES (1, 2, 3)")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT, c)"], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.applied.map(\.kind).first == .rebuildTable)
        #expect(report.findings.map(\.severity) == [.losesData, .removesSchema])
        #expect(report.findings.last?.message == "the migration removes the unique index i from t")
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let impossible =
        [
            Change(
                testDescription: "NULL in a column that becomes NOT NULL",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES (NULL), (NULL), (1)",
                wanted: "CREATE TABLE t(a TEXT NOT NULL)",
                finding: "t.a becomes NOT NULL without a default, but contains 2 NULLs"),
            Change(
                testDescription: "rows without the new column",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES (1), (2)",
                wanted: "CREATE TABLE t(a TEXT, b NOT NULL)", finding: "the NOT NULL column t.b has no default"),
            Change(
                testDescription: "values that repeat",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('X'), (NULL), (NULL)",
                wanted: "CREATE TABLE t(a TEXT COLLATE NOCASE UNIQUE)",
                finding: "t(a) must be unique, but 1 value occurs"),
            Change(
                testDescription: "values that an index wants to differ, by its collation and for its rows alone",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('X'), ('y'), ('z'), ('Z'), ('q')",
                wanted: "CREATE TABLE t(a TEXT)",
                index: "CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE DESC) WHERE a < 'z'",
                finding: "index i requires unique values, but 1 value of t occurs"),
            Change(
                testDescription: "values that an index on an expression wants to differ, defaults of new columns too",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('X'), ('y')",
                wanted: "CREATE TABLE t(a TEXT, b DEFAULT 5)", index: "CREATE UNIQUE INDEX i ON t(lower(a), b)",
                finding: "index i requires unique values, but 1 value of t occurs"),
            Change(
                testDescription: "rows that violate a CHECK",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('long'), ('x'), ('y'), (NULL)",
                wanted: "CREATE TABLE t(a TEXT, CHECK (length(t.a) > 1))",
                finding: "2 rows of t would violate CHECK (length(a) > 1)"),
            Change(
                testDescription: "rows that violate the CHECK of a new column",
                script: "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('y')",
                wanted: "CREATE TABLE t(a TEXT, b INTEGER DEFAULT 1 CHECK (b > 1))",
                finding: "2 rows of t would violate CHECK (b > 1)"),
            Change(
                testDescription: "rows that refer to nothing by a new foreign key",
                script:
                    "CREATE TABLE p(k PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (NULL)",
                wanted: "CREATE TABLE t(a REFERENCES p)", finding: "1 row of t would reference missing rows of p"),
            Change(
                testDescription: "rows that refer to nothing by a second foreign key to the same table",
                script:
                    "CREATE TABLE p(k PRIMARY KEY); CREATE TABLE t(a REFERENCES p(k), b); INSERT INTO t(b) VALUES (1)",
                wanted: "CREATE TABLE t(a REFERENCES p(k), b REFERENCES p(k))",
                finding: "1 row of t would reference missing rows of p"),
            Change(
                testDescription: "a default that refers to nothing",
                script: "CREATE TABLE p(k PRIMARY KEY); CREATE TABLE t(a); INSERT INTO t VALUES (1)",
                wanted: "CREATE TABLE t(a, b INTEGER DEFAULT 7 REFERENCES p(k))",
                finding: "1 row of t would reference missing rows of p"),
            Change(
                testDescription: "NULLs in a column that becomes the INTEGER PRIMARY KEY",
                script: "CREATE TABLE t(a INTEGER, b); INSERT INTO t VALUES (5, 1), (NULL, 2), (NULL, 3)",
                wanted: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
                finding: "t.a becomes the INTEGER PRIMARY KEY, but contains 2 NULLs"),
            Change(
                testDescription: "values in such a column that are no whole numbers",
                script:
                    "CREATE TABLE t(a REAL, b); INSERT INTO t VALUES (5, 1), (1.5, 2), ('x', 3), (x'00', 4), (6.0, 5)",
                wanted: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
                finding: "t.a becomes the INTEGER PRIMARY KEY, but 3 values in it cannot be converted to"),
            Change(
                testDescription: "numbers in such a column that repeat",
                script: "CREATE TABLE t(a REAL, b); INSERT INTO t VALUES (5, 1), (5.0, 2), (6, 3)",
                wanted: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
                finding: "t.a becomes the INTEGER PRIMARY KEY, but 1 value in it occurs more than once"),
        ]
        + (Engine.current.hasStrictTables
            ? [
                Change(
                    testDescription: "values that a strict table does not take",
                    script: "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES ('x'), (1.5), (2), (x'00'), (NULL)",
                    wanted: "CREATE TABLE t(a INTEGER) STRICT",
                    finding: "3 values of t.a would not fit the type INTEGER of a strict table")
            ] : [])

    @Test(
        "A plan's impossible effect on values is refused with the count before any change, under every policy",
        arguments: impossible,
        DestructiveChanges.allCases)
    func refusesImpossible(change: Change, policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), change.script)
        let before = try fixture.bytes()
        let error = try storeError {
            let statements = [change.wanted, change.index, change.parent].compactMap { $0 }
            return try fixture.launch(WantedSource(statements: statements, policy: policy))
        }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains(change.finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test(
        "A plan replaces NULLs by the default if the column becomes NOT NULL and has one",
        arguments: ["'none'", "none", "\"none\"", "('no' || 'ne')"])
    func fillsNulls(value: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, none); INSERT INTO t VALUES (NULL, 1), ('x', 2)")
        let report = try fixture.launch(
            WantedSource(statements: ["CREATE TABLE t(a TEXT NOT NULL DEFAULT \(value), none)"]))
        #expect(
            report.findings.map(\.message) == [
                "the migration replaces 1 NULL of t.a with the default, because the column becomes NOT NULL"
            ])
        #expect(try fixture.rows("SELECT a FROM t") == ["none", "x"].map { "\(Value.text($0))" })
    }

    static let converted = [
        ("b INTEGER NOT NULL DEFAULT '0' CHECK (b IN (0, 1))", nil),
        ("b TEXT NOT NULL DEFAULT 0 CHECK (b IN ('0', '1'))", nil),
        ("b REAL NOT NULL DEFAULT '1.5' CHECK (b = 1.5)", nil),
        ("b INTEGER DEFAULT 1e2 CHECK (typeof(b) = 'integer')", nil),
        ("b DECIMAL DEFAULT '1.5' CHECK (b > 1 AND b < '2')", nil),
        ("b INTEGER DEFAULT 'x' CHECK (typeof(b) = 'text')", nil),
        ("b TEXT COLLATE NOCASE DEFAULT 'X' CHECK (b IN ('x', 'y'))", nil),
        ("b INTEGER NOT NULL DEFAULT '0'", "CREATE UNIQUE INDEX i ON t(a) WHERE b <> 0"),
        ("b INTEGER DEFAULT 'x'", "CREATE UNIQUE INDEX i ON t(a) WHERE b < 1"),
    ]

    @Test("A plan converts the default of a new column as the column does", arguments: converted)
    func convertsDefaults(column: String, index: String?) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'), ('x')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT, \(column))", index].compactMap { $0 })
        let report = try fixture.launch(source)
        #expect(report.findings.isEmpty)
        #expect(try fixture.rows("SELECT b FROM t").count == 2)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let filled = [
        ("TEXT COLLATE NOCASE", "'x'", "CHECK (a IN ('x', 'y'))"), ("TEXT", "0", "CHECK (a IN (0, 'X'))"),
        ("INTEGER", "'1'", "CHECK (a IN ('1', 'X'))"), ("REAL", "'1'", "CHECK (a IN ('1', 'X'))"),
    ]

    @Test("A plan compares filled values as their column does", arguments: filled)
    func comparesFilled(type: String, value: String, check: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a \(type) \(check)); INSERT INTO t VALUES ('X'), (NULL)")
        try fixture.launch(WantedSource(statements: ["CREATE TABLE t(a \(type) NOT NULL DEFAULT \(value) \(check))"]))
        #expect(try fixture.rows("SELECT a FROM t WHERE a IS NULL").isEmpty)
    }

    @Test(
        "A column whose default is not known in advance is added, although an index has an unregistered function",
        .enabled(if: Engine.current.enforcesAddedChecks))
    func addsUnknownDefault() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x'); CREATE INDEX i ON t(lower(a));
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(unregistered(a))' WHERE name = 'i';
            """)
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT, b INTEGER DEFAULT 'x' CHECK (b <> 5))"])
        #expect(try fixture.launch(source).titles == ["addColumn t.b"])
        #expect(try fixture.rows("SELECT b FROM t") == ["\(Value.text("x"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("Rows that violate the CHECK of a new column prevent the migration if its default is not known in advance")
    func enforcesUnknownDefaults() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x')")
        let before = try fixture.bytes()
        let wanted = "CREATE TABLE t(a TEXT, b INTEGER DEFAULT 'x' CHECK (typeof(b) <> 'text'))"
        #expect(try storeError { try fixture.launch(WantedSource(statements: [wanted])) }?.code == .migration)
        #expect(try fixture.bytes() == before)
    }

    static let changedParents = [
        ("p(id INTEGER PRIMARY KEY, uid TEXT)", "p(id INTEGER, uid TEXT PRIMARY KEY)", "p"),
        (
            "p(id INTEGER PRIMARY KEY, uid TEXT UNIQUE)", "p(id INTEGER PRIMARY KEY, uid TEXT COLLATE NOCASE UNIQUE)",
            "p(uid)"
        ),
        (
            "p(id INTEGER PRIMARY KEY, uid TEXT)", "p(id INTEGER PRIMARY KEY, uid TEXT NOT NULL DEFAULT 'b' UNIQUE)",
            "p(uid)"
        ),
    ]

    @Test("A new foreign key is checked against its parent as the migration leaves it", arguments: changedParents)
    func checksChangedParent(present: String, wanted: String, reference: String) throws {
        let (value, key) = wanted.contains("NOT NULL") ? ("NULL", "b") : ("'a'", wanted.contains("NOCASE") ? "A" : "a")
        func fixture(_ key: String) throws -> MigrationFixture {
            try MigrationFixture(
                .init(isEncrypted: false, journalMode: "DELETE"),
                """
                CREATE TABLE \(present); INSERT INTO p VALUES (1, \(value));
                CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('\(key)');
                """)
        }
        let source = WantedSource(
            statements: ["CREATE TABLE \(wanted)", "CREATE TABLE t(a TEXT REFERENCES \(reference))"], policy: .allow)
        #expect(try fixture(key).launch(source).titles.contains("rebuildTable t"))
        let error = try storeError { try fixture("missing").launch(source) }
        #expect(error?.detail.contains("1 row of t") == true)
    }

    @Test("A default that ends with a comment fills NULLs and new columns")
    func fillsCommentedDefaults() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES (NULL)")
        let wanted =
            "CREATE TABLE t(a INTEGER NOT NULL DEFAULT (1 -- one\n), b INTEGER DEFAULT (2 -- two\n) CHECK (b > 1))"
        let source = WantedSource(statements: [wanted])
        try fixture.launch(source)
        #expect(try fixture.rows("SELECT a, b FROM t") == ["\(Value.integer(1))|\(Value.integer(2))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let keyChanges = [
        ("CREATE TABLE t(a TEXT PRIMARY KEY, b TEXT, c)", "CREATE TABLE t(a TEXT, b INTEGER PRIMARY KEY, c)"),
        ("CREATE TABLE t(a TEXT PRIMARY KEY, b TEXT, c)", "CREATE TABLE t(a TEXT, b INTEGER, c, PRIMARY KEY (b, a))"),
        (
            "CREATE TABLE t(a TEXT, b TEXT, c, CONSTRAINT k PRIMARY KEY (a))",
            "CREATE TABLE t(a, b INTEGER PRIMARY KEY, c)"
        ),
        ("CREATE TABLE t(a, b TEXT PRIMARY KEY, c)", "CREATE TABLE t(a, b INTEGER, c, id INTEGER PRIMARY KEY)"),
    ]

    @Test(
        "A plan withholds a primary key change completely if part of it is withheld",
        arguments: keyChanges)
    func withholdsWholeKey(present: String, wanted: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "\(present); INSERT INTO t(a, b) VALUES ('k', '007')")
        let source = WantedSource(statements: [wanted])
        let report = try fixture.launch(source)
        #expect(report.titles.isEmpty)
        #expect(report.withheld.contains { $0.column == "b" && $0.rows == 1 })
        #expect(try fixture.schema()["t"] == present)
        #expect(try fixture.launch(source).applied.isEmpty)

        let other = try fixture.launch(WantedSource(statements: [wanted.replacing(", c", with: ", c TEXT")]))
        #expect(other.titles == ["rebuildTable t"])
        #expect(
            other.applied.first?.reason
                == "the column c is declared as TEXT in the schema, but as no type in the database")
        let key = try fixture.with { try ColumnState.read(table: "t", from: $0).filter { $0.primaryKeyPosition > 0 } }
        #expect(key.map(\.name) == [present.contains("b TEXT PRIMARY KEY") ? "b" : "a"])
    }

    @Test("A plan omits and reports a constraint that needs a column of a withheld primary key")
    func withholdsConstraintsOfKey() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT); INSERT INTO t VALUES ('007', 'b')")
        let source = WantedSource(statements: [
            "CREATE TABLE t(k INTEGER, seq INTEGER DEFAULT 0, v TEXT, PRIMARY KEY (k, seq), CHECK (seq >= 0), CHECK (v <> ''))"
        ])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        let withheld = report.withheld.filter { $0.kind == .changeTable }
        #expect(
            withheld.map(\.reason) == ["CHECK (seq >= 0) is not added, because it needs a column that is not added"])
        #expect(try fixture.schema()["t"]?.contains("CHECK (v <> '')") == true)
        #expect(try fixture.rows("SELECT k FROM t") == ["\(Value.text("007"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let needy = ["b TEXT CHECK (b <> seq)"] + (Engine.current.hasGeneratedColumns ? ["g AS (seq + 1)"] : [])

    @Test("A plan withholds a column that needs a column of a withheld primary key", arguments: needy, [true, false])
    func withholdsNeedyColumns(column: String, isPresent: Bool) throws {
        let present = isPresent ? ", \(column.prefix(1)) TEXT" : ""
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(k TEXT PRIMARY KEY\(present), v TEXT); INSERT INTO t(k) VALUES ('007')")
        let source = WantedSource(statements: [
            "CREATE TABLE t(k INTEGER, seq INTEGER DEFAULT 0, v INTEGER, \(column), PRIMARY KEY (k, seq))"
        ])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(
            report.withheld.first { $0.column == "\(column.prefix(1))" }?.reason
                == "the column depends on the column seq, which is not added")
        #expect(try fixture.rows("SELECT k, v FROM t").count == 1)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let largeKeys = [
        ("CREATE TABLE p(id INTEGER PRIMARY KEY, uid TEXT)", "CREATE UNIQUE INDEX p_uid ON p(uid)", "TEXT"),
        ("CREATE TABLE p(id INTEGER, uid TEXT PRIMARY KEY)", nil, "INTEGER"),
    ]

    @Test(
        "A plan checks a new foreign key of a large table without an index in a number of steps that fits the file",
        arguments: largeKeys)
    func checksLargeTables(parent: String, index: String?, type: String) throws {
        func fixture(_ first: Int) throws -> MigrationFixture {
            try MigrationFixture(
                .init(isEncrypted: false, journalMode: "DELETE"),
                """
                \(parent); CREATE TABLE t(id INTEGER PRIMARY KEY, uid \(type));
                WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 16000) INSERT INTO p SELECT i, i FROM n;
                WITH n(i) AS (VALUES (\(first)) UNION ALL SELECT i + 1 FROM n WHERE i < 16000)
                    INSERT INTO t SELECT i, i FROM n;
                """)
        }
        let child = "CREATE TABLE t(id INTEGER PRIMARY KEY, uid \(type) REFERENCES p(uid))"
        let source = WantedSource(statements: [parent, child, index].compactMap { $0 })
        #expect(try fixture(1).launch(source).titles.contains("rebuildTable t"))
        let error = try storeError { try fixture(-1).launch(source) }
        #expect(error?.detail.contains("2 rows of t would reference missing rows of p") == true)
    }

    @Test("A plan distinguishes two columns whose names differ only in Unicode normalization")
    func distinguishesNames() throws {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t("\(composed)" INTEGER PRIMARY KEY, "\(decomposed)" TEXT, x);
            INSERT INTO t VALUES (1, 'text', 'b');
            """)
        let report = try fixture.launch(
            WantedSource(statements: [
                "CREATE TABLE t(\"\(composed)\" INTEGER PRIMARY KEY, \"\(decomposed)\" TEXT NOT NULL DEFAULT 'd', x)"
            ]))
        #expect(report.titles == ["rebuildTable t"])
        #expect(try fixture.rows("SELECT \"\(decomposed)\" FROM t") == ["\(Value.text("text"))"])
    }

    @Test("A plan loses no value if a column's type changes and every value could change back")
    func convertsValues() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (9223372036854775807, '7'), ('x', NULL)")
        let report = try fixture.launch(WantedSource(statements: ["CREATE TABLE t(a TEXT, b INTEGER)"]))
        #expect(report.titles == ["rebuildTable t"])
        #expect(
            try fixture.rows("SELECT a, b FROM t").first == "\(Value.text("9223372036854775807"))|\(Value.integer(7))")
    }

    @Test("A plan keeps a column that a full-text index reads")
    func knowsVirtualTables() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a, body, other); CREATE VIRTUAL TABLE s USING fts4(content="t", body);
            INSERT INTO t VALUES (1, 'x', 2);
            """)
        let report = try fixture.launch(WantedSource(statements: ["CREATE TABLE t(a)"], policy: .allow))
        #expect(report.withheld.filter { $0.kind == .dropColumn }.map(\.column) == ["body"])
        #expect(report.findings.map(\.column) == ["other"])
        #expect(try fixture.rows("SELECT body FROM s WHERE docid = 1") == ["\(Value.text("x"))"])
    }

    @Test("A plan drops an index with its column, and keeps a column that a view, trigger or foreign key needs")
    func knowsUsers() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a, b, c, d, e UNIQUE); CREATE INDEX t_b ON t(b); CREATE VIEW v AS SELECT c FROM t;
            CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET d = 1; END; CREATE TABLE u(x REFERENCES t(e));
            """)
        let report = try fixture.launch(
            WantedSource(statements: ["CREATE TABLE t(a)", "CREATE TABLE u(x REFERENCES t(e))"], policy: .allow))
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.withheld.map(\.column) == ["c", "d", "e"])
        #expect(try fixture.schema()["t_b"] == nil)
        #expect(try fixture.with { try ColumnState.read(table: "t", from: $0).map(\.name) } == ["a", "c", "d", "e"])
    }

    @Test(
        "A plan keeps a column that a NATURAL join of a view or trigger needs",
        arguments: [
            "CREATE VIEW v AS SELECT w FROM t NATURAL JOIN u",
            "CREATE TRIGGER r AFTER DELETE ON u BEGIN DELETE FROM t WHERE a IN (SELECT a FROM t natural join u); END",
            "CREATE VIEW wide AS SELECT * FROM t; CREATE VIEW v AS SELECT w FROM wide NATURAL LEFT JOIN u",
        ])
    func knowsNaturalJoins(script: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a, k); INSERT INTO t VALUES (1, 2); CREATE TABLE u(k, w); \(script)")
        let source = WantedSource(statements: ["CREATE TABLE t(a)", "CREATE TABLE u(k, w)"], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.titles.isEmpty)
        #expect(report.withheld.map(\.column) == ["k"])
        #expect(try fixture.rows("SELECT k FROM t") == ["\(Value.integer(2))"])
    }

    @Test("A plan does not take the word natural in a comment, a string or an alias for a join")
    func knowsNoNaturalJoins() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a, k); CREATE VIEW v AS SELECT a AS natural, 'natural' FROM t /* natural order */;
            """)
        let report = try fixture.launch(WantedSource(statements: ["CREATE TABLE t(a)"], policy: .allow))
        #expect(report.withheld.isEmpty && report.titles.count == 1, "\(report)")
    }

    @Test(
        "A plan distinguishes the last word of a unique index from a column with the name of an order",
        arguments: ["code || \"desc\"", "code || desc", "code || asc", "code DESC", "code COLLATE nocase ASC"])
    func knowsOrders(part: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE item(code TEXT, desc TEXT, asc TEXT); INSERT INTO item VALUES ('a', 'b', 'c')")
        let source = WantedSource(statements: [
            "CREATE TABLE item(code TEXT NOT NULL, desc TEXT, asc TEXT)", "CREATE UNIQUE INDEX i ON item(\(part))",
        ])
        #expect(try fixture.launch(source).titles == ["rebuildTable item", "createIndex i"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A plan drops a column although the collation of a column that stays is a string in single quotes")
    func knowsCollationsInQuotes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT, k TEXT COLLATE 'NOCASE' CHECK (k <> x), x TEXT); INSERT INTO t VALUES ('a', 'k', 'x');
            CREATE VIEW v AS SELECT k FROM t;
            """)
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT)"], policy: .allow)
        #expect(try fixture.launch(source).titles == ["rebuildTable t"])
        #expect(try fixture.rows("SELECT k = 'K' FROM t") == ["\(Value.integer(1))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A plan compares future values by a collation whose name needs quotes")
    func quotesCollations() throws {
        let collation = Collation(name: "my order") { _, _ in 0 }
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('v')")
        let table = DeclaredTable(
            name: "t", columns: [.init(name: "a", definition: "TEXT COLLATE \"my order\" NOT NULL")],
            indexes: [.init(name: "i", columns: ["a"], isUnique: true)])
        let configuration = Configuration(
            databaseName: "app.db", version: 25, schema: .tables([table]), collations: [collation])
        let report = try fixture.with { connection in
            try connection.register(collation)
            return try SchemaMigrator(configuration: configuration).migrate(connection) { nil }
        }
        #expect(report.titles == ["rebuildTable t", "createIndex i"])
    }
}
