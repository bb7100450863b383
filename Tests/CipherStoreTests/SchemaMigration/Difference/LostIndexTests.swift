internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct LostIndexTests {
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var present: String
        var wanted: String
        var finding: String
        /// The reason why the change is withheld by default; `nil` if it is not.
        var withheld: String?
    }

    static let losses = [
        Change(
            testDescription: "an index of an undeclared table",
            present: "CREATE TABLE other(uid); CREATE INDEX i ON other(uid)", wanted: "CREATE INDEX I ON t(a)",
            finding: "the migration removes the index i from other",
            withheld: "the index I is not created, because other has an index of this name"),
        Change(
            testDescription: "a unique index of an undeclared table",
            present: "CREATE TABLE other(uid); CREATE UNIQUE INDEX i ON other(uid)",
            wanted: "CREATE UNIQUE INDEX i ON t(a)", finding: "the migration removes the unique index i from other",
            withheld: "the index i is not created, because other has an index of this name"),
        Change(
            testDescription: "a unique index of another declared table", present: "CREATE UNIQUE INDEX i ON u(x)",
            wanted: "CREATE UNIQUE INDEX i ON t(a)", finding: "the migration removes the unique index i from u",
            withheld: nil),
        Change(
            testDescription: "a unique index that is declared without UNIQUE",
            present: "CREATE UNIQUE INDEX i ON t(a)", wanted: "CREATE INDEX i ON t(a)",
            finding: "the migration removes the unique index i from t",
            withheld: nil),
        Change(
            testDescription: "a unique index of one column that is declared with two",
            present: "CREATE UNIQUE INDEX i ON t(a)", wanted: "CREATE UNIQUE INDEX i ON t(a, b)",
            finding: weakened, withheld: nil),
        Change(
            testDescription: "a unique index of all rows that is declared with a condition",
            present: "CREATE UNIQUE INDEX i ON t(a)", wanted: "CREATE UNIQUE INDEX i ON t(a) WHERE b > 0",
            finding: weakened, withheld: nil),
        Change(
            testDescription: "a unique index by a collation by which more values are equal",
            present: "CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE)", wanted: "CREATE UNIQUE INDEX i ON t(a)",
            finding: weakened, withheld: nil),
        Change(
            testDescription: "a unique index of another expression",
            present: "CREATE UNIQUE INDEX i ON t(lower(a))", wanted: "CREATE UNIQUE INDEX i ON t(upper(a))",
            finding: weakened, withheld: nil),
    ]

    private static let weakened =
        "after the migration, the unique index i of t accepts values that it did not accept before"

    private static let tables = ["CREATE TABLE t(a, b)", "CREATE TABLE u(x)"]

    private func fixture(_ change: Change) throws -> MigrationFixture {
        try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            (Self.tables + [change.present]).joined(separator: "; "))
    }

    private func source(_ change: Change, _ policy: DestructiveChanges = .withhold) -> WantedSource {
        WantedSource(statements: Self.tables + [change.wanted], policy: policy)
    }

    @Test(
        "An index of an undeclared table stays by default, and the plan states it",
        arguments: losses.filter { $0.withheld != nil })
    func withholds(change: Change) throws {
        let fixture = try fixture(change)
        let before = try fixture.schema()["i"]
        let report = try fixture.launch(source(change))
        #expect(report.titles.isEmpty)
        #expect(report.findings.isEmpty)
        #expect(report.withheld.filter { $0.kind == .changeTable }.map(\.reason) == [try #require(change.withheld)])
        #expect(try fixture.schema()["i"] == before)
        #expect(try fixture.launch(source(change)).applied.isEmpty)
    }

    @Test("An index that the schema would remove prevents the migration under the policy refuse", arguments: losses)
    func refuses(change: Change) throws {
        let fixture = try fixture(change)
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(source(change, .refuse)) }
        #expect(error?.code == .destructiveChanges)
        #expect(error?.detail.contains(change.finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test(
        "Under other policies, an index that the schema would remove is replaced, and the plan names it",
        arguments: losses, [DestructiveChanges.withhold, .allow])
    func replacesLost(change: Change, policy: DestructiveChanges) throws {
        guard policy == .allow || change.withheld == nil else { return }
        let fixture = try fixture(change)
        let report = try fixture.launch(source(change, policy))
        #expect(report.applied.first?.kind == .dropIndex)
        #expect(report.applied.first?.risk == .removesSchema)
        let finding = report.findings.first { $0.message == change.finding }
        #expect(finding?.severity == .removesSchema)
        #expect(try fixture.rows("SELECT tbl_name FROM sqlite_master WHERE name = 'i' COLLATE NOCASE").count == 1)
        #expect(try fixture.rows("PRAGMA index_list(t)").count == 1)
        #expect(try fixture.launch(source(change, policy)).applied.isEmpty)
    }

    static let replaced = [
        ("CREATE INDEX i ON u(x)", "CREATE INDEX i ON t(a)"),
        ("CREATE INDEX i ON t(a)", "CREATE UNIQUE INDEX i ON t(a)"),
        ("CREATE UNIQUE INDEX i ON t(a) WHERE a > 1", "CREATE UNIQUE INDEX i ON t(a) WHERE a > 0"),
        ("CREATE UNIQUE INDEX i ON t(a) WHERE a > 1", "CREATE UNIQUE INDEX i ON t(a)"),
        ("CREATE UNIQUE INDEX i ON t(a, b)", "CREATE UNIQUE INDEX i ON t(b, a)"),
        ("CREATE UNIQUE INDEX i ON t(a, b)", "CREATE UNIQUE INDEX i ON t(a)"),
        ("CREATE UNIQUE INDEX i ON t(a)", "CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE)"),
        ("CREATE UNIQUE INDEX i ON t(lower(a))", "CREATE UNIQUE INDEX i ON t(LOWER(a) DESC)"),
    ]

    @Test("An index that the schema replaces is not lost", arguments: replaced, DestructiveChanges.allCases)
    func replaces(texts: (present: String, wanted: String), policy: DestructiveChanges) throws {
        let change = Change(
            testDescription: "", present: texts.present, wanted: texts.wanted, finding: "", withheld: nil)
        let report = try fixture(change).launch(source(change, policy))
        #expect(report.titles == ["dropIndex i", "createIndex i"])
        #expect(report.applied.allSatisfy { $0.risk == .none })
        #expect(report.withheld.isEmpty)
        #expect(report.findings.isEmpty)
    }

    @Test(
        "A unique index that a column's new collation weakens prevents the migration under the policy refuse",
        arguments: [true, false])
    func comparesCollations(isIndexCollated: Bool) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT COLLATE NOCASE); INSERT INTO t VALUES ('x');
            CREATE UNIQUE INDEX i ON t(a\(isIndexCollated ? " COLLATE NOCASE" : ""));
            """)
        var source = WantedSource(statements: ["CREATE TABLE t(a TEXT)"], policy: .refuse)
        if !isIndexCollated {
            let error = try storeError { try fixture.launch(source) }
            #expect(error?.detail.contains(Self.weakened) == true)
            source.policy = .withhold
        }
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.findings.map(\.message) == (isIndexCollated ? [] : [Self.weakened]))
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let moved = [
        ("CREATE TABLE t(a UNIQUE, b)", ["CREATE TABLE t(a, b)", "CREATE UNIQUE INDEX i ON t(a)"]),
        (
            "CREATE TABLE t(a, b); CREATE UNIQUE INDEX i ON t(a)",
            ["CREATE TABLE t(a UNIQUE, b)", "CREATE INDEX i ON t(a)"]
        ),
        ("CREATE TABLE t(a UNIQUE, b); CREATE UNIQUE INDEX other ON t(a)", ["CREATE TABLE t(a, b)"]),
    ]

    @Test(
        "A unique constraint is not lost if a unique index of the same columns replaces it, or the other way round",
        arguments: moved, DestructiveChanges.allCases)
    func movesKeys(texts: (present: String, wanted: [String]), policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), texts.present)
        let source = WantedSource(statements: texts.wanted, policy: policy)
        let report = try fixture.launch(source)
        #expect(report.titles.contains("rebuildTable t"))
        #expect(report.findings.isEmpty)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A unique constraint is lost if the unique index of the same columns has a condition")
    func comparesConditions() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a UNIQUE, b)")
        let report = try fixture.launch(
            WantedSource(statements: ["CREATE TABLE t(a, b)", "CREATE UNIQUE INDEX i ON t(a) WHERE b > 0"]))
        #expect(report.findings.map(\.message) == ["the migration removes UNIQUE (a) from t"])
    }

    // MARK: Triggers

    @Test(
        "A trigger of an undeclared table is replaced by a declared trigger of this name only if the policy allows it",
        arguments: DestructiveChanges.allCases)
    func comparesTriggers(policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a); CREATE TABLE other(x);
            CREATE TRIGGER i AFTER INSERT ON other BEGIN INSERT INTO t VALUES ('other'); END;
            """)
        let source = WantedSource(
            statements: ["CREATE TABLE t(a)", "CREATE TRIGGER i AFTER INSERT ON t BEGIN SELECT 1; END"], policy: policy)
        let finding = "the migration removes the trigger i from other"
        switch policy {
        case .refuse:
            #expect(try storeError { try fixture.launch(source) }?.detail.contains(finding) == true)
        case .withhold:
            let report = try fixture.launch(source)
            #expect(report.titles.isEmpty)
            #expect(
                report.withheld.filter { $0.kind == .changeTable }.map(\.reason) == [
                    "the trigger i is not created, because other has a trigger of this name"
                ])
        case .allow:
            let report = try fixture.launch(source)
            #expect(report.titles.prefix(1) == ["dropTrigger i"])
            #expect(report.findings.map(\.message).contains(finding))
        }
        #expect(
            try fixture.rows("SELECT tbl_name FROM sqlite_master WHERE name = 'i'")
                == ["\(Value.text(policy == .allow ? "t" : "other"))"])
    }

    // MARK: With a column that is left out

    @Test(
        "A declared index of a column that is left out is withheld",
        arguments: ["seq", "\"seq\"", "v, \"seq\" DESC"])
    func withholdsIndex(columns: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT); INSERT INTO t VALUES ('007', 'b'), ('008', 'c');
            CREATE UNIQUE INDEX i ON t(v);
            """)
        var source = WantedSource(statements: [
            "CREATE TABLE t(k INTEGER, seq INTEGER NOT NULL DEFAULT 0, v TEXT, PRIMARY KEY (k, seq))",
            "CREATE INDEX i ON t(\(columns))", "CREATE INDEX made ON t(\(columns))", "CREATE INDEX other ON t(v)",
        ])
        let report = try fixture.launch(source)
        #expect(report.titles.contains("createIndex other"))
        #expect(
            report.withheld.filter { $0.kind == .changeTable }.map(\.reason) == [
                "the index i is not changed, because the column seq is not added",
                "the index made is not created, because the column seq is not added",
            ])
        #expect(report.findings.isEmpty)
        #expect(try fixture.schema()["i"] == "CREATE UNIQUE INDEX i ON t(v)")
        #expect(try fixture.schema()["made"] == nil)
        #expect(try fixture.launch(source).applied.isEmpty)
        source.statements[0] = "CREATE TABLE t(k TEXT PRIMARY KEY, seq INTEGER DEFAULT 5, v TEXT)"
        try fixture.launch(source)
        #expect(
            try fixture.rows("SELECT count(*) FROM t INDEXED BY made WHERE seq = 5 AND v > ''")
                == ["\(Value.integer(2))"])
        #expect(try fixture.rows("PRAGMA integrity_check") == ["\(Value.text("ok"))"])
    }

    @Test(
        "A declared unique index of a column that is left out is withheld", arguments: ["(seq)", "(v) WHERE seq > 0"])
    func withholdsUniqueIndex(rest: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT); INSERT INTO t VALUES ('007', 'b'), ('008', 'b')")
        let source = WantedSource(statements: [
            "CREATE TABLE t(k INTEGER, seq INTEGER NOT NULL DEFAULT 0, v TEXT, PRIMARY KEY (k, seq))",
            "CREATE UNIQUE INDEX i ON t\(rest)",
        ])
        let report = try fixture.launch(source)
        #expect(
            report.withheld.map(\.reason).contains(
                "the index i is not created, because the column seq is not added"))
        #expect(try fixture.rows("SELECT k FROM t").count == 2)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    // MARK: With a column

    @Test("An index is dropped with a column only if it contains the column, and a unique one is named")
    func dropsWithColumn() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE tag(id INTEGER PRIMARY KEY, tag TEXT, name TEXT, other TEXT);
            CREATE INDEX by_name ON tag(name COLLATE NOCASE) WHERE name <> 'tag'; CREATE INDEX by_tag ON tag(name, "tag");
            CREATE UNIQUE INDEX by_both ON tag(lower(name), other) WHERE tag.tag IS NOT NULL;
            """)
        let source = WantedSource(
            statements: ["CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT, other TEXT)"], policy: .allow)
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable tag"])
        #expect(
            report.applied.first?.reason
                == "the column tag is dropped; the index by_tag uses a dropped column and is also dropped; the index "
                + "by_both uses a dropped column and is also dropped"
        )
        #expect(
            report.findings.map(\.message) == [
                "the migration drops tag.tag, which contains no values",
                "the migration removes the unique index by_both from tag",
            ])
        #expect(try fixture.schema()["by_name"] != nil)
        #expect(try fixture.schema()["by_tag"] == nil)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let keywords = [
        ("desc", "a DESC"), ("asc", "lower(a) ASC"), ("end", "CASE WHEN a > 1 THEN 2 END"),
        ("precision", "CAST(a AS double precision)"), ("desc", "a COLLATE nocase DESC) WHERE (a NOT NULL"),
    ]

    @Test("An index is not dropped with a column whose name the index contains only as a keyword", arguments: keywords)
    func knowsKeywords(column: String, parts: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, \(column) TEXT); CREATE INDEX i ON t(\(parts)); INSERT INTO t VALUES ('x', NULL)")
        let index = try fixture.schema()["i"]
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT)"], policy: .allow)
        #expect(try fixture.launch(source).applied.first?.reason == "the column \(column) is dropped")
        #expect(try fixture.schema()["i"] == index)
    }

    @Test("A column whose name is a keyword in an index can replace an empty column")
    func renamesKeyword() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT, desc TEXT, text TEXT); INSERT INTO t VALUES ('x', 'y', NULL);
            CREATE INDEX i ON t(a AND desc, desc DESC);
            """)
        var source = WantedSource(statements: ["CREATE TABLE t(a TEXT, text TEXT)"])
        source.renames.columns[SQLName("t")] = [SQLName("text"): "desc"]
        try fixture.launch(source)
        #expect(try fixture.rows("SELECT text FROM t") == ["\(Value.text("y"))"])
        #expect(try fixture.schema()["i"] == "CREATE INDEX i ON t(a AND \"text\", \"text\" DESC)")
    }
}
