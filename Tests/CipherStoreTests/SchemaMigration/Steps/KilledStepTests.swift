internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A step of the app's own system, killed after each of its statements.
struct KilledStepTests {
    struct Step: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let statements: [String]
        /// The numbers of statements after which the database does not show what has run.
        var unclear: Set<Int> = []
    }

    static let steps = [
        Step(
            testDescription: "a row by its PRIMARY KEY, then a column",
            statements: ["INSERT INTO tag VALUES ('x', 'new')", "ALTER TABLE item ADD COLUMN a"]),
        Step(
            testDescription: "a row by UNIQUE under a number of SQLite's, then a table",
            statements: ["INSERT INTO mark(name) VALUES ('x')", "CREATE TABLE later(a)"]),
        Step(
            testDescription: "a row under its number, then a column",
            statements: ["INSERT INTO item(id, body) VALUES (70, 'x')", "ALTER TABLE item ADD COLUMN a"]),
        Step(
            testDescription: "rows alone",
            statements: ["INSERT INTO tag VALUES ('x', 'new')", "INSERT INTO tag VALUES ('y', 'new'), ('z', 'new')"]),
        Step(
            testDescription: "rows, a column, and a row in it",
            statements: [
                "INSERT INTO tag VALUES ('x', 'new')", "INSERT INTO mark(name) VALUES ('x')",
                "ALTER TABLE tag ADD COLUMN a", "INSERT INTO tag VALUES ('y', 'new', 1)",
            ]),
        Step(
            testDescription: "a table, its row, and a row elsewhere",
            statements: [
                "CREATE TABLE later(a UNIQUE)", "INSERT INTO later VALUES (1)", "INSERT INTO tag VALUES ('x', 'n')",
            ]),
        Step(
            testDescription: "a row without any key, then a column",
            statements: ["INSERT INTO line VALUES ('new')", "ALTER TABLE item ADD COLUMN a"], unclear: [1]),
        Step(
            testDescription: "a row under a number of SQLite's, then a column",
            statements: ["INSERT INTO item(body) VALUES ('new')", "ALTER TABLE item ADD COLUMN a"], unclear: [1]),
        Step(
            testDescription: "a row, then an UPDATE, then a column",
            statements: [
                "INSERT INTO tag VALUES ('x', 'new')", "UPDATE item SET body = body || '!'",
                "ALTER TABLE item ADD COLUMN a",
            ], unclear: [1, 2]),
    ]

    /// How the two systems record that the step has yet to run.
    enum System: String, Sendable, CaseIterable {
        case numbered, appVersions

        var step: String { self == .numbered ? "sql_update_2.plist" : "sql_update_1.10.0.plist" }
        var version: String { self == .numbered ? "2" : #""1.10.0""# }
        var record: String {
            self == .numbered
                ? "CREATE TABLE db_version(db_version_num INTEGER); INSERT INTO db_version VALUES (2);"
                : """
                CREATE TABLE tb_clientstage(id TEXT, tableno TEXT, version TEXT);
                INSERT INTO tb_clientstage VALUES ('1', '0', '1.9.2');
                """
        }
    }

    private static let schema = [
        "CREATE TABLE item(id INTEGER PRIMARY KEY, body TEXT)", "CREATE TABLE tag(code TEXT PRIMARY KEY, name TEXT)",
        "CREATE TABLE mark(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE)", "CREATE TABLE line(text TEXT)",
    ]
    private static let rows = """
        INSERT INTO item VALUES (4, 'one'), (8, 'two'); INSERT INTO tag VALUES ('own', 'mine');
        INSERT INTO mark VALUES (6, 'own'); INSERT INTO line VALUES ('first');
        """

    private static func text(_ statements: [String]) throws -> String {
        String(decoding: try JSONEncoder().encode(statements), as: UTF8.self)
    }

    private func fixture(_ system: System, _ step: Step, until count: Int) throws -> StepsFixture {
        let fixture = try StepsFixture(
            ["sql_default.plist": Self.text(Self.schema), system.step: Self.text(step.statements)],
            version: system.version)
        try fixture.write { connection in
            try connection.executeScript(text: Self.schema.joined(separator: ";") + ";" + Self.rows + system.record)
            for statement in step.statements.prefix(count) { try connection.executeScript(text: statement) }
        }
        return fixture
    }

    private func content(_ fixture: StepsFixture) throws -> [String] {
        try fixture.read { (connection) throws in
            var lines = try LegacyStepsApp.schema(connection)
            for table in ["item", "tag", "mark", "line"] {
                try connection.forEachRow(SQL(text: "SELECT rowid, * FROM \(table) ORDER BY 1, 2")) { row in
                    lines.append("\(table): " + (0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: ", "))
                }
            }
            return lines
        }
    }

    @Test(
        "A step killed after any statement completes later, or is refused before anything is recorded",
        arguments: System.allCases, steps)
    func ends(system: System, step: Step) throws {
        let whole = try fixture(system, step, until: 0)
        _ = try whole.open()
        let wanted = try content(whole)
        for count in 1...step.statements.count {
            let killed = try fixture(system, step, until: count)
            let state: Comment = "behind \(count) statements"
            if step.unclear.contains(count) {
                let before = try Data(contentsOf: URL(fileURLWithPath: killed.path))
                for _ in 1...2 {
                    let error = try #require(try storeError { _ = try killed.open() }, state)
                    #expect(error.code == .migration, state)
                    #expect(error.description.contains("updates.repeatable"), state)
                    #expect(try storeError { _ = try killed.plan() }?.code == .migration, state)
                }
                let after = try Data(contentsOf: URL(fileURLWithPath: killed.path))
                #expect(after == before, state)
            } else {
                _ = try killed.plan()
                _ = try killed.open()
                #expect(try content(killed) == wanted, state)
                #expect(try killed.open().migration.applied.isEmpty, state)
            }
        }
    }

    @Test("A later release can name the statements that may run again", arguments: System.allCases)
    func answers(system: System) throws {
        let step = Step(
            testDescription: "", statements: ["INSERT INTO line VALUES ('new')", "ALTER TABLE item ADD COLUMN a"])
        var fixture = try fixture(system, step, until: 1)
        #expect(try storeError { _ = try fixture.open() }?.code == .migration)
        let again = "INSERT INTO line SELECT 'new' WHERE NOT EXISTS (SELECT 1 FROM line WHERE text = 'new')"
        try fixture.folder.write(Self.text([again, step.statements[1]]), to: "steps/\(system.step)")
        let json = """
            {"dbName": "app.db", "dbVersion": \(system.version),
             "updates": {"directory": "steps", "repeatable": ["\(system.step)[0]"]}}
            """
        try fixture.folder.write(json, to: "app.json")
        fixture.configuration = try Configuration(contentsOf: fixture.folder.url.appending(path: "app.json"))
        _ = try fixture.open()
        try fixture.read { (connection) throws in
            #expect(try connection.values(String.self, "SELECT text FROM line ORDER BY 1") == ["first", "new"])
        }
    }

    @Test("A row that every step writes in the same way is not evidence for any one step", arguments: System.allCases)
    func runsAlike(system: System) throws {
        let line = "INSERT INTO line VALUES ('upgraded')"
        let fixture = try StepsFixture(
            [
                "sql_default.plist": Self.text(Self.schema),
                "sql_update_2.plist": Self.text([line]), "sql_update_3.plist": Self.text([line]),
            ])
        try fixture.write { connection in
            try connection.executeScript(
                text: Self.schema.joined(separator: ";") + ";" + Self.rows + line
                    + ";CREATE TABLE db_version(db_version_num INTEGER); INSERT INTO db_version VALUES (3)")
        }
        _ = try fixture.open()
        try fixture.read { (connection) throws in
            #expect(try connection.value(Int.self, "SELECT count(*) FROM line") == 3)
        }
    }

    @Test("A repeatable statement that no step contains is a configuration error")
    func refusesUnknown() throws {
        let fixture = try StepsFixture(
            ["sql_default.plist": Self.text(Self.schema), "sql_update_2.plist": "[]", "sql_update_3.plist": "[]"])
        let json = """
            {"dbName": "app.db", "dbVersion": 3,
             "updates": {"directory": "steps", "repeatable": ["sql_update_9.plist[0]"]}}
            """
        try fixture.folder.write(json, to: "app.json")
        let error = try #require(
            try storeError { try Configuration(contentsOf: fixture.folder.url.appending(path: "app.json")) })
        #expect(error.code == .configuration)
        #expect(error.detail.contains("updates.repeatable[0]"))
        #expect(error.path?.hasSuffix("app.json") == true)
    }
}
