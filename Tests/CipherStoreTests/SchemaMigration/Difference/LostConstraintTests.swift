internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct LostConstraintTests {
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var present: String
        var wanted: String
        /// The part of the table that the change would remove.
        var lost: String
        var others: [String] = []
    }

    static let losses =
        [
            Change(
                testDescription: "UNIQUE of a column", present: "CREATE TABLE t(a TEXT UNIQUE, b)",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "UNIQUE (a)"),
            Change(
                testDescription: "UNIQUE of the table",
                present: "CREATE TABLE t(a TEXT, b, CONSTRAINT u UNIQUE (b, a))",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "UNIQUE (b, a)"),
            Change(
                testDescription: "UNIQUE of several columns, of which only one is still unique",
                present: "CREATE TABLE t(a TEXT, b, UNIQUE (a, b), UNIQUE (a))",
                wanted: "CREATE TABLE t(a TEXT UNIQUE, b)", lost: "UNIQUE (a, b)"),
            Change(
                testDescription: "UNIQUE by a collation by which more values are equal",
                present: "CREATE TABLE t(a TEXT COLLATE NOCASE UNIQUE, b)",
                wanted: "CREATE TABLE t(a TEXT UNIQUE, b)", lost: "UNIQUE (a)"),
            Change(
                testDescription: "ON CONFLICT of a column",
                present: "CREATE TABLE t(a TEXT UNIQUE ON CONFLICT REPLACE, b)",
                wanted: "CREATE TABLE t(a TEXT UNIQUE, b)", lost: "ON CONFLICT REPLACE (a)"),
            Change(
                testDescription: "ON CONFLICT of a column, while another column gains it",
                present: "CREATE TABLE t(a TEXT UNIQUE ON CONFLICT REPLACE, b)",
                wanted: "CREATE TABLE t(a TEXT UNIQUE, b UNIQUE ON CONFLICT REPLACE)", lost: "ON CONFLICT REPLACE (a)"),
            Change(
                testDescription: "ON CONFLICT of the table",
                present: "CREATE TABLE t(a TEXT, b, UNIQUE (a, b) ON CONFLICT REPLACE)",
                wanted: "CREATE TABLE t(a TEXT, b, UNIQUE (a, b))", lost: "ON CONFLICT REPLACE (a, b)"),
            Change(
                testDescription: "CHECK of a column", present: "CREATE TABLE t(a TEXT CHECK (a <> 'No'), b)",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "CHECK (a <> 'No')"),
            Change(
                testDescription: "CHECK of the table", present: "CREATE TABLE t(a TEXT, b, CHECK (a > b))",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "CHECK (a > b)"),
            Change(
                testDescription: "a foreign key of a column",
                present: "CREATE TABLE t(a TEXT, b REFERENCES p(k) ON DELETE CASCADE)",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "FOREIGN KEY (b) REFERENCES p"),
            Change(
                testDescription: "a foreign key of the table",
                present: "CREATE TABLE t(a TEXT, b, FOREIGN KEY (b, a) REFERENCES p(k, l))",
                wanted: "CREATE TABLE t(a TEXT, b)", lost: "FOREIGN KEY (b, a) REFERENCES p"),
            Change(
                testDescription: "the action of a foreign key of a column",
                present: "CREATE TABLE t(a TEXT, b REFERENCES p(k) ON DELETE CASCADE)",
                wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k))", lost: "ON DELETE CASCADE of FOREIGN KEY (b)"),
            Change(
                testDescription: "the action of a foreign key of the table",
                present: "CREATE TABLE t(a TEXT, b, FOREIGN KEY (b) REFERENCES p(k) ON UPDATE SET NULL)",
                wanted: "CREATE TABLE t(a TEXT, b, FOREIGN KEY (b) REFERENCES p(k))",
                lost: "ON UPDATE SET NULL of FOREIGN KEY (b)"),
            Change(
                testDescription: "the deferral of a foreign key",
                present: "CREATE TABLE t(a TEXT, b REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED)",
                wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k) NOT DEFERRABLE INITIALLY DEFERRED)",
                lost: "DEFERRABLE INITIALLY DEFERRED (b)"),
            Change(
                testDescription: "the deferral of a foreign key, while another foreign key gains it",
                present: "CREATE TABLE t(a TEXT, b REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED, c)",
                wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k), c REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED)",
                lost: "DEFERRABLE INITIALLY DEFERRED (b)"),
            Change(
                testDescription: "one of two CHECKs of a column, of which a new one replaces only the other",
                present: "CREATE TABLE t(a TEXT CHECK (a > '0') CHECK (a < 'z'), b)",
                wanted: "CREATE TABLE t(a TEXT CHECK (a > '1'), b)", lost: "CHECK (a < 'z')"),
            Change(
                testDescription: "AUTOINCREMENT", present: "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b)",
                wanted: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)", lost: "AUTOINCREMENT"),
            Change(
                testDescription: "AUTOINCREMENT of a table without rowids",
                present: "CREATE TABLE t(a INTEGER, b, PRIMARY KEY (a AUTOINCREMENT))",
                wanted: "CREATE TABLE t(a INTEGER PRIMARY KEY, b) WITHOUT ROWID", lost: "AUTOINCREMENT"),
            Change(
                testDescription: "INTEGER PRIMARY KEY", present: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
                wanted: "CREATE TABLE t(a INTEGER, b)", lost: "INTEGER PRIMARY KEY (a)"),
            Change(
                testDescription: "INTEGER PRIMARY KEY, for a key that does not number its rows",
                present: "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
                wanted: "CREATE TABLE t(a INT PRIMARY KEY, b)", lost: "INTEGER PRIMARY KEY (a)"),
            Change(
                testDescription: "INTEGER PRIMARY KEY, for another key",
                present: "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)",
                wanted: "CREATE TABLE t(a INTEGER, b TEXT PRIMARY KEY)", lost: "INTEGER PRIMARY KEY (a)"),
            Change(
                testDescription: "a primary key of several columns",
                present: "CREATE TABLE t(a TEXT, b, PRIMARY KEY (b, a))", wanted: "CREATE TABLE t(a TEXT, b)",
                lost: "PRIMARY KEY (b, a)"),
            Change(
                testDescription: "one of two foreign keys of a column",
                present: "CREATE TABLE t(a TEXT, b REFERENCES p(k), FOREIGN KEY (b) REFERENCES q(k))",
                wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k))", lost: "FOREIGN KEY (b) REFERENCES q"),
        ]
        + (Engine.current.hasStrictTables
            ? [
                Change(
                    testDescription: "STRICT", present: "CREATE TABLE t(a TEXT, b TEXT) STRICT",
                    wanted: "CREATE TABLE t(a TEXT, b TEXT)", lost: "STRICT"),
                Change(
                    testDescription: "the expression of a column",
                    present: "CREATE TABLE t(a TEXT, b TEXT AS (a || 'x') STORED)",
                    wanted: "CREATE TABLE t(a TEXT, b TEXT)", lost: "the expression (a || 'x') of b"),
            ] : [])

    private static let parent = "CREATE TABLE p(k PRIMARY KEY, l, UNIQUE (k, l))"

    private func fixture(_ change: Change) throws -> MigrationFixture {
        let row = change.present.contains("INTEGER") ? "(7)" : "('x')"
        return try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "\(Self.parent); CREATE TABLE q(k PRIMARY KEY); \(change.present); INSERT INTO t(a) VALUES \(row)")
    }

    private func source(_ change: Change, _ policy: DestructiveChanges = .withhold) -> WantedSource {
        WantedSource(statements: [Self.parent, "CREATE TABLE q(k PRIMARY KEY)", change.wanted], policy: policy)
    }

    // MARK: The policy

    @Test(
        "A constraint that the schema does not declare prevents the migration under the policy refuse",
        arguments: losses)
    func refuses(change: Change) throws {
        let fixture = try fixture(change)
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(source(change, .refuse)) }
        #expect(error?.code == .destructiveChanges)
        #expect(error?.detail.contains("the migration removes \(change.lost)") == true, "\(error?.detail ?? "none")")
        #expect(try fixture.bytes() == before)
    }

    @Test(
        "A constraint that the schema does not declare is removed under other policies, and the plan names it",
        arguments: losses, [DestructiveChanges.withhold, .allow])
    func removes(change: Change, policy: DestructiveChanges) throws {
        let fixture = try fixture(change)
        let report = try fixture.launch(source(change, policy))
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.applied.first?.risk == .removesSchema)
        #expect(report.applied.first?.reason.contains("\(change.lost) is removed") == true)
        #expect(report.withheld.isEmpty)
        let finding = report.findings.first { $0.message.hasPrefix("the migration removes \(change.lost)") }
        #expect(finding?.severity == .removesSchema)
        #expect(finding?.table == "t")
        #expect(try fixture.rows("SELECT count(*) FROM t") == ["\(Value.integer(1))"])
        #expect(try fixture.launch(source(change, policy)).applied.isEmpty)
    }

    // MARK: With other changes

    @Test("A constraint of a column that is dropped goes with it, and the others are named")
    func dropsWithColumn() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a, b UNIQUE CHECK (b > 1), c, d REFERENCES b(k), UNIQUE (b, c), CHECK (a <> c))")
        let report = try fixture.launch(
            WantedSource(statements: ["CREATE TABLE t(a, c, d REFERENCES b(k), CHECK (a <> c))"], policy: .allow))
        #expect(
            report.findings.map(\.message) == [
                "the migration drops t.b, which contains no values", "the migration removes UNIQUE (b, c) from t",
            ])
        #expect(try fixture.schema()["t"]?.contains("REFERENCES b(k)") == true)
    }

    @Test("A constraint that only shares a name with a column that is dropped stays")
    func keepsNamesakes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE p(k PRIMARY KEY, lower);
            CREATE TABLE t(a, p, k, lower, CONSTRAINT k FOREIGN KEY (a) REFERENCES p(k), CHECK (lower(a) <> 'p'));
            """)
        let configuration = Configuration.declaring(
            ["p": ["k": "PRIMARY KEY", "lower": ""], "t": ["a": ""]], destructiveChanges: .allow)
        let report = try fixture.launch(configuration)
        #expect(report.findings.map(\.column) == ["p", "k", "lower"])
        #expect(try fixture.rows("PRAGMA foreign_key_list(t)").count == 1)
        #expect(try fixture.schema()["t"]?.contains("CHECK (lower(a) <> 'p')") == true)
    }

    @Test("The declared primary key replaces the old one, and the table constraints stay", arguments: [true, false])
    func keepsBesideOtherKey(isAllowed: Bool) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT UNIQUE, CHECK (a <> ''));
            INSERT INTO t VALUES (7, 'x');
            """)
        let configuration = Configuration.declaring(
            ["t": ["chat": "INTEGER PRIMARY KEY", "a": "TEXT UNIQUE"]],
            destructiveChanges: isAllowed ? .allow : .withhold)
        let report = try fixture.launch(configuration)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.withheld.map(\.column) == (isAllowed ? [] : ["id"]))
        let isNamed = report.findings.contains { $0.message == "the migration removes INTEGER PRIMARY KEY (id) from t" }
        #expect(isNamed != isAllowed)
        #expect(try fixture.schema()["t"]?.contains("CHECK (a <> '')") == true)
        #expect(try fixture.rows("SELECT chat || a FROM t") == ["\(Value.text("7x"))"])
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    @Test("A primary key that is spelled differently stays, and a CHECK of its column is reported as removed")
    func keepsKeyBesideLostCheck() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(id INTEGER CHECK (id > 0), name TEXT, PRIMARY KEY (id AUTOINCREMENT));
            INSERT INTO t VALUES (7, 'x');
            """)
        let configuration = Configuration.declaring(
            ["t": ["id": "INTEGER PRIMARY KEY AUTOINCREMENT", "name": "TEXT"]])
        let report = try fixture.launch(configuration)
        #expect(report.findings.map(\.message) == ["the migration removes CHECK (id > 0) from t"])
        #expect(try fixture.schema()["t"]?.contains("PRIMARY KEY AUTOINCREMENT") == true)
        #expect(try fixture.launch(configuration).applied.isEmpty)
    }

    @Test("A constraint that calls a function that is not registered stays, and prevents only changes to its table")
    func keepsUnknownFunctions() throws {
        let present = "CREATE TABLE t(a TEXT, CHECK (app_hash(a) <> 0))"
        let fixture = try MigrationFixture()
        try fixture.with { connection in
            try connection.register(AppExtensions.hash)
            try connection.execute(SQL(text: present))
        }
        func configuration(_ type: String) -> Configuration {
            .declaring(["t": ["a": type], "u": ["x": ""]], destructiveChanges: .allow)
        }
        #expect(try fixture.launch(configuration("TEXT")).titles == ["createTable u"])
        #expect(try fixture.launch(configuration("text")).titles.isEmpty)
        let error = try storeError { try fixture.launch(configuration("BLOB")) }
        #expect(error?.code == .missingFunction)
        #expect(error?.detail.contains("t cannot be changed to match the schema") == true)
        #expect(try fixture.schema()["t"] == present)
        var known = configuration("BLOB")
        known.functions = [AppExtensions.hash]
        let report = try fixture.with { connection in
            try connection.register(AppExtensions.hash)
            return try SchemaMigrator(configuration: known).migrate(connection) { nil }
        }
        #expect(report.titles == ["rebuildTable t"])
        #expect(try fixture.schema()["t"]?.contains("CHECK (app_hash(a) <> 0)") == true)
    }

    // MARK: What is not lost

    static let replaced = [
        Change(
            testDescription: "a UNIQUE that is declared elsewhere", present: "CREATE TABLE t(a TEXT UNIQUE, b)",
            wanted: "CREATE TABLE t(a TEXT, b INTEGER, CONSTRAINT u UNIQUE (a))", lost: ""),
        Change(
            testDescription: "a UNIQUE by a collation by which fewer values are equal",
            present: "CREATE TABLE t(a TEXT UNIQUE, b)", wanted: "CREATE TABLE t(a TEXT COLLATE NOCASE UNIQUE, b)",
            lost: ""),
        Change(
            testDescription: "a primary key that becomes a UNIQUE",
            present: "CREATE TABLE t(a TEXT PRIMARY KEY, b)", wanted: "CREATE TABLE t(a TEXT UNIQUE, b)", lost: ""),
        Change(
            testDescription: "a UNIQUE that becomes the key", present: "CREATE TABLE t(a TEXT UNIQUE, b)",
            wanted: "CREATE TABLE t(a TEXT PRIMARY KEY, b)", lost: ""),
        Change(
            testDescription: "a CHECK of the same columns",
            present: "CREATE TABLE t(a TEXT CHECK (a IN ('x', 'y')), b)",
            wanted: "CREATE TABLE t(a TEXT CHECK (a IN ('x', 'y', 'z')), b)", lost: ""),
        Change(
            testDescription: "a foreign key to another table", present: "CREATE TABLE t(a TEXT REFERENCES gone(k), b)",
            wanted: "CREATE TABLE t(a TEXT, b, FOREIGN KEY (a) REFERENCES q(k))", lost: ""),
        Change(
            testDescription: "another action of a foreign key",
            present: "CREATE TABLE t(a TEXT, b REFERENCES p(k) ON DELETE CASCADE)",
            wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k) ON DELETE SET NULL)", lost: ""),
        Change(
            testDescription: "a key that numbers its rows", present: "CREATE TABLE t(b, a INT PRIMARY KEY)",
            wanted: "CREATE TABLE t(b, a INTEGER PRIMARY KEY)", lost: ""),
        Change(
            testDescription: "a foreign key that is deferred now", present: "CREATE TABLE t(a TEXT, b REFERENCES p(k))",
            wanted: "CREATE TABLE t(a TEXT, b REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED)", lost: ""),
    ]

    @Test("A constraint that the schema replaces is not lost", arguments: replaced, DestructiveChanges.allCases)
    func replaces(change: Change, policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "\(Self.parent); CREATE TABLE q(k PRIMARY KEY); \(change.present)")
        let source = WantedSource(
            statements: [Self.parent, "CREATE TABLE q(k PRIMARY KEY)", change.wanted], policy: policy)
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.applied.first?.risk == Plan.Operation.Risk.none)
        #expect(report.withheld.isEmpty)
        #expect(report.findings.isEmpty)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    static let moved = [
        ("CREATE TABLE t(a TEXT UNIQUE ON CONFLICT REPLACE, b)", "CONSTRAINT b UNIQUE (a) ON CONFLICT REPLACE"),
        (
            "CREATE TABLE t(a TEXT REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED, b)",
            "CONSTRAINT b FOREIGN KEY (a) REFERENCES p(k) DEFERRABLE INITIALLY DEFERRED"
        ),
    ]

    @Test("A clause of a column is not lost if a table constraint on the same column has it", arguments: moved)
    func movesClause(present: String, constraint: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "\(Self.parent); \(present)")
        let source = WantedSource(
            statements: [Self.parent, "CREATE TABLE t(a TEXT, b, \(constraint))"], policy: .refuse)
        #expect(try fixture.launch(source).findings.isEmpty)
    }

    static let nullable = [
        ("CREATE TABLE t(a TEXT NOT NULL, b)", "CREATE TABLE t(a TEXT, b)"),
        ("CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID", "CREATE TABLE t(a TEXT PRIMARY KEY, b)"),
    ]

    @Test(
        "A NOT NULL that the schema does not declare is removed under every policy, and the plan notes it",
        arguments: nullable, DestructiveChanges.allCases)
    func notesNullable(tables: (present: String, wanted: String), policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), tables.present)
        let report = try fixture.launch(WantedSource(statements: [tables.wanted], policy: policy))
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.findings.map(\.severity) == [.note])
        #expect(report.findings.map(\.message) == ["the migration removes NOT NULL (a) from t"])
        #expect(report.applied.first?.risk == Plan.Operation.Risk.none)
    }

    // MARK: Values

    @Test(
        "A strict table whose values would change without STRICT stays strict by default",
        .enabled(if: Engine.current.hasStrictTables))
    func keepsValuesOfAny() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a ANY, b TEXT) STRICT; INSERT INTO t VALUES ('007', 'x'), ('y', NULL), (7, NULL)")
        func configuration(_ policy: DestructiveChanges) throws -> Configuration {
            let json = """
                {"dbName": "app.db", "dbVersion": 25, "dbTables": [{"t": [{"a": "ANY"}, {"b": "TEXT"}]}],
                 "tableOptions": {"t": {"strict": false}}, "destructiveChanges": "\(policy.rawValue)"}
                """
            return try Configuration(data: Data(json.utf8), place: "test.json")
        }
        let report = try fixture.launch(try configuration(.withhold))
        #expect(report.titles.isEmpty)
        #expect(report.withheld.map(\.rows) == [1])
        #expect(try fixture.rows("SELECT a FROM t WHERE b = 'x'") == ["\(Value.text("007"))"])
        #expect(try fixture.launch(try configuration(.withhold)).applied.isEmpty)
        #expect(try storeError { try fixture.launch(try configuration(.refuse)) }?.code == .destructiveChanges)
        let allowed = try fixture.launch(try configuration(.allow))
        #expect(allowed.findings.contains { $0.severity == .losesData && $0.column == "a" && $0.count == 1 })
        #expect(try fixture.rows("SELECT a FROM t WHERE b = 'x'") == ["\(Value.integer(7))"])
    }
}
