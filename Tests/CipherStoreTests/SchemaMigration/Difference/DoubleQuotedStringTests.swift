internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// SQLite treats a name in double quotes as a string if nothing has this name.
struct DoubleQuotedStringTests {
    @Test(
        "A new column with the name of a string in double quotes in an index of the table is refused",
        arguments: ["CREATE TABLE t(a, b, x)", "CREATE TABLE t(a TEXT, b, x)"])
    func refusesCapture(wanted: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a, b); CREATE UNIQUE INDEX i ON t(b) WHERE a = \"x\"; INSERT INTO t VALUES ('x', 1)")
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(WantedSource(statements: [wanted])) }
        #expect(error?.code == .migration)
        let finding = "the string \"x\" in the index i would become a reference to the new column"
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test(
        "A change that gives a name in double quotes in a generated column another meaning is refused",
        .enabled(if: Engine.current.hasGeneratedColumns), arguments: ["UNIQUE", "STORED"], [true, false])
    func refusesOtherValues(option: String, isAdded: Bool) throws {
        let (column, old, new) = ("g AS (a || \"x\") \(option)", Self.use(isAdded), Self.use(!isAdded))
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, \(column)\(isAdded ? "" : ", x TEXT")); INSERT INTO t(a) VALUES ('v')")
        let before = try fixture.bytes()
        let wanted = "CREATE TABLE t(a TEXT, \(column)\(isAdded ? ", x TEXT" : ""))"
        let error = try storeError { try fixture.launch(WantedSource(statements: [wanted], policy: .allow)) }
        #expect(error?.code == .migration)
        let finding = "AS (a || \"x\") of t contains \"x\" as \(old), which the migration would turn into \(new)"
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test("A change that gives a name in double quotes in a CHECK another meaning is named", arguments: [true, false])
    func namesOtherCheck(isAdded: Bool) throws {
        func table(_ hasColumn: Bool) -> String {
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\")\(hasColumn ? ", x TEXT" : ""))"
        }
        func fixture() throws -> MigrationFixture {
            try MigrationFixture(
                .init(isEncrypted: false, journalMode: "DELETE"), "\(table(!isAdded)); INSERT INTO t(a) VALUES ('v')")
        }
        var source = WantedSource(statements: [table(isAdded)], policy: .refuse)
        let finding =
            "CHECK (a <> \"x\") of t contains \"x\" as \(Self.use(isAdded)), which the migration would turn into "
            + Self.use(!isAdded)
        let refused = try fixture()
        #expect(try storeError { try refused.launch(source) }?.detail.contains(finding) == true)

        source.policy = .allow
        let allowed = try fixture()
        #expect(try allowed.launch(source).findings.map(\.message).contains(finding))
        #expect(try allowed.launch(source).applied.isEmpty)
    }

    @Test("Rows that violate a CHECK because a string in double quotes replaces a dropped column prevent the migration")
    func enforcesOtherCheck() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\"), x TEXT); INSERT INTO t(a) VALUES ('x')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT CHECK (a <> \"x\"))"], policy: .allow)
        let error = try storeError { try fixture.launch(source) }
        #expect(error?.detail.contains("1 row of t would violate CHECK (a <> \"x\")") == true)
    }

    static let otherNames =
        [
            ("b TEXT CHECK (CAST(a AS \"text\") <> '')", "text"), ("b TEXT CHECK (\"upper\"(a) <> '')", "upper"),
            ("b TEXT CHECK (a <> '' COLLATE \"nocase\")", "nocase"),
        ] + (Engine.current.hasGeneratedColumns ? [("g AS (\"upper\"(a))", "upper")] : [])

    @Test("A new column may have the name of a function, a type or a collation in double quotes", arguments: otherNames)
    func acceptsOtherNames(column: String, added: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, \(column)); CREATE INDEX i ON t(\"upper\"(a)); INSERT INTO t(a) VALUES ('v')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT, \(column), \(added) TEXT)"], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["addColumn t.\(added)"])
        #expect(try fixture.rows("SELECT a FROM t") == ["\(Value.text("v"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    private static func use(_ isString: Bool) -> String { isString ? "a string" : "the name of a column" }

    @Test("A new column is added if the schema writes the string of this name in single quotes")
    func acceptsSingleQuotes() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT CHECK (a <> \"x\")); INSERT INTO t VALUES ('v')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT CHECK (a <> 'x'), x TEXT)"], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["rebuildTable t"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    struct Captured: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        /// The view or trigger that contains the string.
        var object: String
        var wanted = "CREATE TABLE t(a TEXT, b, x INTEGER NOT NULL DEFAULT 1)"
    }

    static let captured = [
        Captured(
            testDescription: "a trigger of another table deletes rows",
            script:
                "CREATE TRIGGER g AFTER INSERT ON run BEGIN DELETE FROM t WHERE a <> \"x\"; END",
            object: "trigger g"),
        Captured(
            testDescription: "a rebuild",
            script: "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET a = \"x\" WHERE b = new.b; END",
            object: "trigger g", wanted: "CREATE TABLE t(a TEXT NOT NULL DEFAULT '', b, x INTEGER NOT NULL DEFAULT 1)"),
        Captured(
            testDescription: "a view", script: "CREATE VIEW v AS SELECT b FROM t WHERE a = \"x\"", object: "view v"),
        Captured(
            testDescription: "in parentheses after OR",
            script: "CREATE VIEW v AS SELECT b FROM t WHERE b > 1 OR (\"x\" = a)", object: "view v"),
        Captured(
            testDescription: "a trigger that reads the table only through a view",
            script: """
                CREATE VIEW v AS SELECT * FROM t;
                CREATE TRIGGER g AFTER INSERT ON run BEGIN DELETE FROM run WHERE n IN (SELECT b FROM v WHERE a = "x"); END
                """,
            object: "trigger g"),
        Captured(
            testDescription: "a view with a common table expression",
            script: "CREATE VIEW v AS WITH q AS (SELECT * FROM t) SELECT b FROM q WHERE a = \"x\"", object: "view v"),
        Captured(
            testDescription: "beside IS",
            script: "CREATE TRIGGER g AFTER INSERT ON run BEGIN DELETE FROM t WHERE a IS NOT \"x\" OR b IS \"x\"; END",
            object: "trigger g"),
        Captured(
            testDescription: "a common table expression with the name of a view",
            script: """
                CREATE VIEW old AS SELECT 1;
                CREATE TRIGGER g AFTER INSERT ON run BEGIN
                    DELETE FROM t WHERE b IN (WITH old AS (SELECT b FROM t WHERE a <> "x") SELECT b FROM old); END
                """,
            object: "trigger g"),
        Captured(
            testDescription: "beside a broken trigger of the same table",
            script: """
                CREATE TRIGGER broken AFTER INSERT ON run BEGIN INSERT INTO missing VALUES (1); END;
                CREATE TRIGGER g AFTER INSERT ON run BEGIN DELETE FROM t WHERE a <> "x"; END
                """,
            object: "trigger g"),
        Captured(
            testDescription: "UPDATE OF",
            script: "CREATE TRIGGER g AFTER UPDATE OF n ON run BEGIN DELETE FROM t WHERE a <> \"x\"; END",
            object: "trigger g"),
        Captured(
            testDescription: "a trigger of a view",
            script: """
                CREATE VIEW v AS SELECT b FROM t;
                CREATE TRIGGER g INSTEAD OF DELETE ON v BEGIN DELETE FROM t WHERE b = old.b AND a = "x"; END
                """,
            object: "trigger g"),
    ]

    @Test(
        "A new column with the name of a string in double quotes in a view or trigger is refused", arguments: captured,
        DestructiveChanges.allCases)
    func refusesCaptureByObjects(captured: Captured, policy: DestructiveChanges) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES ('x', 1); CREATE TABLE run(n); \(captured.script)")
        let before = try fixture.bytes()
        let source = WantedSource(statements: [captured.wanted, "CREATE TABLE run(n)"], policy: policy)
        let error = try storeError { try fixture.launch(source) }
        #expect(error?.code == .migration)
        let finding = "the string \"x\" in the \(captured.object) would become a reference to the new column"
        #expect(error?.detail.contains(finding) == true)
        #expect(try fixture.bytes() == before)
    }

    @Test("A renamed column with the name of a string in double quotes in a trigger never changes the string's meaning")
    func renamesBesideString() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES ('x', 1), ('y', 2); CREATE TABLE run(n);
            CREATE TRIGGER g AFTER INSERT ON run BEGIN DELETE FROM t WHERE b = "x"; END
            """)
        var source = WantedSource(statements: ["CREATE TABLE t(x TEXT, b)"])
        source.renames.columns[SQLName("t")] = [SQLName("x"): "a"]
        guard Engine.current.canRenameColumns else {
            #expect(try storeError { try fixture.launch(source) }?.code == .migration)
            return
        }
        #expect(try fixture.launch(source).titles == ["renameColumn t.a"])
        try fixture.with { try $0.executeScript("INSERT INTO run VALUES (1)") }
        #expect(try fixture.rows("SELECT b FROM t").count == 2)
    }

    static let names = [
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE other SET \"x\" = 1 WHERE \"x\" = new.b; END",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO other(\"x\") VALUES (new.b); END",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO other VALUES (\"x\"); END",
        "CREATE VIEW v AS SELECT b AS \"x\" FROM t", "CREATE VIEW v AS SELECT a, \"x\" FROM other, (SELECT a FROM t)",
        "CREATE VIEW v AS SELECT a FROM t WHERE EXISTS (SELECT 1 FROM missing WHERE \"x\" = 1)",
        "CREATE VIEW v AS SELECT \"t\".* FROM t WHERE b IN (SELECT \"b\" FROM other WHERE \"x\" = 'v')",
    ]

    @Test(
        "A new column may have the name of a column of another table, of an alias, or of a string that cannot be a column",
        arguments: names)
    func acceptsNamesElsewhere(object: String) throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES ('v', 1); CREATE TABLE other(x); \(object)")
        let source = WantedSource(
            statements: ["CREATE TABLE t(a TEXT, b, x TEXT)", "CREATE TABLE other(x)"], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["addColumn t.x"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A new column is added if the schema writes the string in a trigger in single quotes")
    func acceptsCorrectedTrigger() throws {
        func trigger(_ string: String) -> String {
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = \(string); END"
        }
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"), "CREATE TABLE t(a TEXT); \(trigger("\"x\""))")
        let statements = ["CREATE TABLE t(a TEXT, x TEXT)", trigger("'x'")]
        let source = WantedSource(statements: statements, policy: .refuse)
        #expect(try fixture.launch(source).titles == ["dropTrigger g", "addColumn t.x", "createTrigger g"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A view or trigger that was broken, or that the schema contains, is only named in a warning")
    func warnsOfPossibleCapture() throws {
        let declared = "CREATE VIEW v AS SELECT b FROM t WHERE a = \"x\""
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            """
            CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES ('v', 1); CREATE TABLE run(n); \(declared);
            CREATE TRIGGER g AFTER INSERT ON run BEGIN UPDATE t SET x = 1 WHERE b = new.n AND a <> "x"; END
            """)
        let source = WantedSource(
            statements: ["CREATE TABLE t(a TEXT, b, x TEXT)", "CREATE TABLE run(n)", declared], policy: .refuse)
        let report = try fixture.launch(source)
        #expect(report.titles == ["addColumn t.x"])
        let warnings = report.findings.filter { $0.severity == .warning }.map(\.message)
        #expect(
            warnings.sorted()
                == ["the trigger g", "the view v"].map {
                    "\($0) contains \"x\"; if this is a string, it becomes a reference to the new column"
                })
    }
}
