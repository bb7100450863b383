internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

/// A view or trigger may use the name of a new column for something else; ``DoubleQuotedStringTests`` covers strings.
struct CapturedNameTests {
    private static let tables = """
        CREATE TABLE folder(fid INTEGER PRIMARY KEY, state TEXT); CREATE TABLE log(n);
        CREATE TABLE item(id INTEGER PRIMARY KEY, folderId INTEGER, body TEXT);
        INSERT INTO folder VALUES (1, 'open'), (2, 'closed'); INSERT INTO item VALUES (1, 1, 'a'), (2, 2, 'b');
        """

    private static func wanted(item: String) -> [String] {
        [
            "CREATE TABLE folder(fid INTEGER PRIMARY KEY, state TEXT)", "CREATE TABLE log(n)",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, folderId INTEGER, \(item))",
        ]
    }

    private static func fixture(_ objects: String) throws -> MigrationFixture {
        try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), tables + objects)
    }

    struct Captured: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var script: String
        var object: String
        var column = "state"
    }

    static let captured = [
        Captured(
            testDescription: "a column of an outer query in a trigger",
            script: """
                CREATE TRIGGER g AFTER INSERT ON log BEGIN DELETE FROM folder WHERE NOT EXISTS
                    (SELECT 1 FROM item WHERE folderId = fid AND state = 'open'); END
                """,
            object: "trigger g"),
        Captured(
            testDescription: "a column of an outer query in a view",
            script: """
                CREATE VIEW v AS SELECT fid FROM folder WHERE EXISTS
                    (SELECT 1 FROM item WHERE folderId = fid AND state = 'open')
                """,
            object: "view v"),
        Captured(
            testDescription: "an alias", script: "CREATE VIEW v AS SELECT id AS state FROM item WHERE state = 1",
            object: "view v"),
        Captured(
            testDescription: "an alias in double quotes",
            script: "CREATE VIEW v AS SELECT id AS \"state\" FROM item WHERE \"state\" = 1", object: "view v"),
        Captured(
            testDescription: "a NATURAL JOIN",
            script: """
                CREATE VIEW f AS SELECT fid AS folderId, state FROM folder;
                CREATE VIEW v AS SELECT id FROM item NATURAL JOIN f
                """,
            object: "view v"),
        Captured(
            testDescription: "the rowid",
            script: "CREATE TRIGGER g AFTER INSERT ON log BEGIN DELETE FROM item WHERE _rowid_ = new.n; END",
            object: "trigger g", column: "_rowid_"),
        Captured(
            testDescription: "a function that only the app registers",
            script: """
                CREATE VIEW v AS SELECT appRank(fid) FROM folder WHERE EXISTS
                    (SELECT 1 FROM item WHERE folderId = fid AND state = 'open')
                """,
            object: "view v"),
        Captured(
            testDescription: "an INSTEAD OF trigger beside a broken one",
            script: """
                CREATE VIEW v AS SELECT fid FROM folder;
                CREATE TRIGGER broken INSTEAD OF DELETE ON v BEGIN INSERT INTO missing VALUES (1); END;
                CREATE TRIGGER g INSTEAD OF DELETE ON v BEGIN DELETE FROM folder WHERE fid = old.fid AND EXISTS
                    (SELECT 1 FROM item WHERE state = 'open'); END
                """,
            object: "trigger g"),
    ]

    @Test(
        "A new column whose name a view or trigger uses for something else is refused", arguments: captured,
        DestructiveChanges.allCases)
    func refuses(captured: Captured, policy: DestructiveChanges) throws {
        let fixture = try Self.fixture(captured.script)
        let before = try fixture.bytes()
        let wanted = Self.wanted(item: "body TEXT, \(captured.column) TEXT")
        let error = try storeError { try fixture.launch(WantedSource(statements: wanted, policy: policy)) }
        #expect(error?.code == .migration)
        let finding = "the new column item.\(captured.column) would change the meaning of the \(captured.object)"
        #expect(error?.detail.contains(finding) == true)
        #expect(error?.detail.contains("broken") == false)
        #expect(try fixture.bytes() == before)
    }

    @Test("A new column that makes a name in a view ambiguous is refused")
    func refusesAmbiguity() throws {
        let fixture = try Self.fixture("CREATE VIEW v AS SELECT state FROM folder JOIN item ON folderId = fid")
        let source = WantedSource(statements: Self.wanted(item: "body TEXT, state TEXT"), policy: .refuse)
        let finding = "the new column item.state would break the view v: ambiguous column name: state"
        #expect(try storeError { try fixture.launch(source) }?.detail.contains(finding) == true)
    }

    @Test("A renamed column whose new name a trigger uses for a column of another table is refused")
    func refusesRename() throws {
        let fixture = try Self.fixture(
            """
            CREATE TRIGGER g AFTER INSERT ON log BEGIN DELETE FROM folder WHERE NOT EXISTS
                (SELECT 1 FROM item WHERE folderId = fid AND body <> '' AND state = 'open'); END
            """)
        var source = WantedSource(statements: Self.wanted(item: "state TEXT"), policy: .refuse)
        source.renames.columns[SQLName("item")] = [SQLName("state"): "body"]
        let error = try storeError { try fixture.launch(source) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("the new column item.state would change the meaning of the trigger g") == true)
    }

    static let unaffected = [
        "CREATE VIEW v AS SELECT * FROM item; CREATE VIEW w AS SELECT fid FROM folder, v WHERE folderId = fid",
        "CREATE VIEW v AS SELECT folder.state AS state FROM folder JOIN item ON folderId = fid ORDER BY state",
        "CREATE VIEW v AS SELECT (SELECT state FROM folder WHERE fid = folderId) AS state FROM item ORDER BY state",
        "CREATE VIEW v AS SELECT id AS folderless FROM item NATURAL JOIN log",
        "CREATE TRIGGER g AFTER INSERT ON item BEGIN UPDATE folder SET state = 'open' WHERE fid = new.folderId; END",
        "CREATE TRIGGER g AFTER UPDATE OF body ON item BEGIN INSERT INTO log VALUES (new.rowid); END",
        "CREATE VIEW v AS SELECT missing FROM item WHERE EXISTS (SELECT state FROM folder)",
        """
        CREATE VIEW v AS SELECT state FROM folder; CREATE TRIGGER g INSTEAD OF UPDATE ON v BEGIN
            UPDATE folder SET state = new.state WHERE state = old.state; END
        """,
    ]

    @Test(
        "A new column may have a name that views and triggers use only where it cannot be meant", arguments: unaffected)
    func accepts(objects: String) throws {
        let fixture = try Self.fixture(objects)
        let source = WantedSource(statements: Self.wanted(item: "body TEXT, state TEXT"), policy: .refuse)
        let report = try fixture.launch(source)
        #expect(report.titles == ["addColumn item.state"])
        #expect(report.findings.isEmpty)
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A new definition of a view does not affect a trigger that reads the view by its columns")
    func acceptsNewView() throws {
        func view(_ definition: String) -> String { "CREATE VIEW v AS \(definition)" }
        let fixture = try Self.fixture(
            """
            \(view("SELECT id FROM item WHERE body = \"state\""));
            CREATE TRIGGER g AFTER INSERT ON log BEGIN DELETE FROM item WHERE id IN (SELECT id FROM v); END
            """)
        let source = WantedSource(
            statements: Self.wanted(item: "body TEXT, state TEXT") + [
                view("SELECT id, state FROM item WHERE body = 'state'")
            ], policy: .refuse)
        #expect(try fixture.launch(source).titles == ["dropView v", "addColumn item.state", "createView v"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }

    @Test("A new column of a view whose name a trigger uses for something else is refused")
    func refusesNewView() throws {
        let fixture = try Self.fixture(
            """
            CREATE VIEW v AS SELECT id, folderId FROM item;
            CREATE TRIGGER g AFTER INSERT ON log BEGIN DELETE FROM folder WHERE NOT EXISTS
                (SELECT 1 FROM v WHERE folderId = fid AND state = 'open'); END
            """)
        let statements = Self.wanted(item: "body TEXT")
        let view = "CREATE VIEW v AS SELECT id, folderId, body AS state FROM item"
        let error = try storeError { try fixture.launch(WantedSource(statements: statements + [view])) }
        #expect(error?.detail.contains("the new column v.state would change the meaning of the trigger g") == true)
    }
}
