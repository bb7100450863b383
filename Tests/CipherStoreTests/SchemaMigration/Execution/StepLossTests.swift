internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct StepLossTests {
    private static let baseline = [
        "CREATE TABLE chat (id INTEGER PRIMARY KEY, body TEXT, draft TEXT, mood TEXT)",
        "CREATE INDEX chat_mood ON chat(mood)", "CREATE TABLE tag (chat INTEGER, name TEXT, UNIQUE (name))",
        "CREATE TABLE empty (x)", "CREATE TABLE archive (id INTEGER, body TEXT, draft TEXT, mood TEXT)",
    ]
    private static let legacy =
        baseline.joined(separator: ";") + """
            ; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
            INSERT INTO chat SELECT i, 'b' || i, CASE WHEN i % 2 THEN 'd' END, CASE WHEN i < 5 THEN 'm' END FROM n;
            INSERT INTO tag VALUES (1, 'a'), (2, 'b'), (3, 'c');
            """

    private static let rebuild = [
        "CREATE TABLE chat_new (id INTEGER PRIMARY KEY, body TEXT, draft TEXT)",
        "INSERT INTO chat_new SELECT id, body, draft FROM chat", "DROP TABLE chat",
        "ALTER TABLE chat_new RENAME TO chat",
    ]

    /// The steps as SQL, or as Swift code that runs the SQL.
    private static func configuration(
        _ statements: [String], inSwift: Bool, policy: DestructiveChanges = .withhold,
        allowing names: Set<String> = []
    ) -> Configuration {
        var configuration = Configuration(
            databaseName: "app.db", version: 2, recordedVersion: .userVersion,
            schema: .steps(
                MigrationSteps(
                    baseline: .sql(baseline),
                    updates: [
                        .init(
                            2,
                            inSwift
                                ? .swift { for sql in statements { try $0.execute(SQL(text: sql)) } }
                                : .sql(statements))
                    ])), destructiveChanges: policy)
        configuration.destructiveSteps = names
        return configuration
    }

    @Test(
        "An app step that loses data is refused with the figures, in SQL or Swift, and nothing is changed",
        arguments: [
            (["DELETE FROM chat"], "deletes 9 of 9 rows from chat"),
            (["DELETE FROM chat WHERE id IN (2, 4)"], "deletes 2 of 9 rows from chat"),
            (["UPDATE chat SET draft = NULL WHERE id > 5"], "sets 2 values of chat.draft to NULL"),
            (["INSERT OR REPLACE INTO chat (id, body) VALUES (1, 'x')"], "sets 1 value of chat.draft to NULL"),
            (["DROP TABLE chat"], "drops the table chat, and with it 9 rows"),
            (rebuild, "chat.mood"),
            (["INSERT INTO tag VALUES (7, 'x')", "DELETE FROM chat WHERE id = 1"], "1 of 9 rows"),
            (["CREATE TEMP TABLE t AS SELECT id FROM chat", "DROP TABLE chat"], "9 values from chat.body"),
            (
                [
                    "CREATE TEMP TABLE t AS SELECT * FROM chat", "DELETE FROM chat", "DROP TABLE t",
                ], "9 rows"
            ),
            (
                ["INSERT INTO archive SELECT * FROM chat WHERE id < 4", "DELETE FROM chat WHERE id < 6"],
                "deletes 5 of 9 rows from chat, of which only 3 were copied to another table"
            ),
            (["ALTER TABLE chat RENAME TO old", "CREATE TABLE chat (id)", "DROP TABLE old"], "9 rows"),
            (
                [
                    "CREATE TRIGGER t AFTER INSERT ON tag BEGIN DELETE FROM chat WHERE id = 1; END",
                    "INSERT INTO tag VALUES (9, 'z')",
                ],
                "deletes 1 of 9 rows from chat"
            ),
            (["INSERT OR REPLACE INTO tag(rowid, name) VALUES (1, 'b')"], "deletes 1 of 3 rows from tag"),
            (["CREATE TEMP TABLE t AS SELECT * FROM chat", "DELETE FROM chat"], "9 rows of chat"),
            (
                [
                    "CREATE TEMP TABLE t AS SELECT * FROM chat", "DELETE FROM chat",
                    "INSERT INTO chat SELECT id, body, NULL, NULL FROM t", "DROP TABLE t",
                ], ".draft"
            ),
            (
                [
                    "CREATE TABLE u (id, body, draft, mood UNIQUE)", "INSERT OR REPLACE INTO u SELECT * FROM chat",
                    "DROP TABLE chat",
                ], "9 rows, of which only 6 were copied to another table"
            ),
            (
                [
                    "ALTER TABLE chat RENAME TO old", "CREATE TABLE chat (id, body, a DEFAULT 1, b DEFAULT 1)",
                    "INSERT INTO chat(id, body) SELECT id, body FROM old", "DROP TABLE old",
                ], ".draft"
            ),
            (
                [
                    "CREATE TABLE talk AS SELECT * FROM chat WHERE id < 6", "DROP TABLE chat",
                    "ALTER TABLE talk RENAME TO chat",
                ], "9 rows"
            ),
            (
                [
                    "INSERT INTO archive(id) SELECT chat FROM tag", "DROP TABLE tag",
                    "ALTER TABLE chat RENAME TO tag", "UPDATE tag SET draft = NULL",
                ], "3 values from tag.name"
            ),
            (
                [
                    "CREATE VIRTUAL TABLE f USING fts4(name)", "INSERT INTO f SELECT name FROM tag",
                    "INSERT INTO archive(id) SELECT chat FROM tag", "DELETE FROM tag", "DROP TABLE f",
                ], " 3 "
            ),
            (
                [
                    "CREATE VIRTUAL TABLE f USING fts4(name)", "INSERT INTO f VALUES ('x')",
                    "DELETE FROM tag WHERE chat > 0 AND name <> ''",
                ], "deletes 3 of 3 rows from tag"
            ),
        ] as [([String], String)] + newer, [false, true])
    func refused(step: ([String], expected: String), inSwift: Bool) throws {
        let (statements, expected) = step
        for policy in [DestructiveChanges.withhold, .refuse] {
            let fixture = try MigrationFixture(.init(isEncrypted: true, journalMode: "WAL"), Self.legacy)
            let before = try fixture.content()
            let error = try storeError {
                try fixture.launch(Self.configuration(statements, inSwift: inSwift, policy: policy), recorded: 1)
            }
            #expect(error?.code == .destructiveChanges)
            #expect(error?.detail.contains(expected) == true, "\(String(describing: error?.detail))")
            #expect(error?.advice.contains("the loss is intentional: update 2") == true)
            #expect(try fixture.content() == before)
            let allowed = Self.configuration(statements, inSwift: inSwift, policy: policy, allowing: ["update 2"])
            #expect(try fixture.launch(allowed, recorded: 1).event == .adopted)
        }
    }

    private static let newer: [([String], String)] =
        Engine.current.sqliteVersionNumber < 3_035_000
        ? []
        : [
            (
                [
                    "DROP INDEX chat_mood", "ALTER TABLE chat DROP COLUMN mood",
                    "ALTER TABLE chat ADD COLUMN flag INTEGER NOT NULL DEFAULT 0",
                ], "drops the column chat.mood, and with it 4 values"
            )
        ]

    @Test(
        "An app step that loses nothing runs, in SQL or Swift",
        arguments: [
            rebuild.map { $0.replacingOccurrences(of: "draft", with: "draft, mood") }
                .map {
                    $0.replacingOccurrences(of: "body TEXT, draft, mood TEXT", with: "body TEXT, draft TEXT, mood TEXT")
                },
            ["ALTER TABLE chat RENAME TO talk"], ["UPDATE chat SET body = 'new'"], ["UPDATE chat SET draft = 'x'"],
            ["INSERT INTO chat (id) VALUES (20), (21)"], ["CREATE TEMP TABLE t (x)", "DROP TABLE t"],
            ["CREATE TABLE scratch (x)", "INSERT INTO scratch VALUES (1), (2)", "DROP TABLE scratch"],
            ["INSERT INTO archive SELECT * FROM chat WHERE id < 6", "DELETE FROM chat WHERE id < 6"],
            ["CREATE TABLE talk AS SELECT id, body AS text, draft, mood FROM chat", "DROP TABLE chat"],
            [
                "ALTER TABLE chat RENAME TO old", "CREATE TABLE chat (id INTEGER PRIMARY KEY, body, draft, mood)",
                "INSERT INTO chat SELECT * FROM old", "DROP TABLE old",
            ],
            [
                "CREATE TEMP TABLE t AS SELECT * FROM chat", "DELETE FROM chat", "INSERT INTO chat SELECT * FROM t",
                "DROP TABLE t",
            ],
            ["INSERT OR IGNORE INTO tag VALUES (9, 'a')"], ["DROP TABLE empty"], ["DROP INDEX chat_mood"],
            ["DELETE FROM chat WHERE id > 100"],
            [
                "CREATE TABLE a AS SELECT id, body FROM chat", "CREATE TABLE b AS SELECT id, draft, mood FROM chat",
                "DROP TABLE chat",
            ],
            [
                "CREATE VIEW v AS SELECT * FROM chat", "INSERT INTO archive SELECT * FROM v", "DROP VIEW v",
                "DELETE FROM chat",
            ],
            ["INSERT INTO archive WITH c AS (SELECT * FROM chat) SELECT * FROM c", "DELETE FROM chat"],
            [
                "CREATE TEMP TABLE t AS SELECT * FROM chat", "INSERT INTO archive SELECT * FROM t", "DROP TABLE t",
                "DROP TABLE chat",
            ],
            [
                "CREATE TABLE talk (id INTEGER PRIMARY KEY, body TEXT, draft TEXT, mood TEXT)",
                "INSERT INTO talk SELECT * FROM chat", "DROP TABLE chat", "ALTER TABLE talk RENAME TO chat",
            ],
            [
                "CREATE TABLE 'my talk'(a INTEGER PRIMARY KEY, b TEXT, c TEXT, d TEXT)",
                "INSERT OR IGNORE INTO main.[my talk] /* all */ SELECT * FROM \"main\".`CHAT` AS c -- of them",
                "DROP TABLE chat",
            ],
            ["CREATE TEMP TABLE t AS SELECT id FROM chat"],
            ["CREATE TEMP TABLE t AS SELECT id FROM chat", "DELETE FROM t WHERE id > 4", "DROP TABLE t"],
            [
                "CREATE TABLE talk AS SELECT id, body, draft, mood FROM chat WHERE id < 4",
                "INSERT INTO archive SELECT * FROM chat WHERE id >= 4", "DROP TABLE chat",
                "ALTER TABLE talk RENAME TO chat",
            ],
            ["CREATE TEMP TABLE t AS SELECT * FROM chat", "DELETE FROM chat", "INSERT INTO chat SELECT * FROM t"],
        ]
            + (Engine.current.sqliteVersionNumber < 3_025_000
                ? [] : [["ALTER TABLE chat RENAME COLUMN body TO text", "ALTER TABLE chat ADD COLUMN x"]])
            + (Engine.current.sqliteVersionNumber < 3_035_000
                ? []
                : [["CREATE TABLE sketch AS SELECT id, draft FROM chat", "ALTER TABLE chat DROP COLUMN draft"]]),
        [false, true])
    func runs(statements: [String], inSwift: Bool) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        let report = try fixture.launch(Self.configuration(statements, inSwift: inSwift), recorded: 1)
        #expect(report.event == .adopted)
        #expect(!report.findings.contains { $0.severity == .losesData }, "\(report.findings)")
    }

    /// A launch with one step in Swift.
    private func launch(_ step: @escaping @Sendable (Connection) throws -> Void, legacy: String = legacy) throws
        -> MigrationReport
    {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), legacy)
        var configuration = Self.configuration([], inSwift: false)
        configuration.schema = .steps(
            MigrationSteps(baseline: .sql(Self.baseline), updates: [.init(2, .swift(step))]))
        return try fixture.launch(configuration, recorded: 1)
    }

    @Test("An app step that moves rows one by one runs, although each statement is compiled once")
    func movesOneByOne() throws {
        let report = try launch { connection in
            for id in 1...9 {
                try connection.execute("INSERT INTO archive SELECT * FROM chat WHERE id = \(id)")
                try connection.execute("DELETE FROM chat WHERE id = \(id)")
            }
        }
        #expect(report.event == .adopted)
    }

    @Test("An app step that rolls its copy back is refused")
    func rolledBackCopy() throws {
        let error = try storeError {
            _ = try launch { connection in
                try? connection.transaction {
                    try connection.execute("INSERT INTO archive SELECT * FROM chat")
                    throw CancellationError()
                }
                try connection.execute("DELETE FROM chat")
            }
        }
        #expect(error?.detail.contains("deletes 9 of 9 rows from chat") == true, "\(String(describing: error))")
    }

    @Test("An app step can change a table with as many columns as SQLite allows")
    func manyColumns() throws {
        let columns = (1...2000).map { "c\($0)" }.joined(separator: ", ")
        let legacy = Self.legacy + "; CREATE TABLE wide (\(columns)); INSERT INTO wide (c1, c2000) VALUES (1, 2)"
        let report = try launch({ try $0.execute("UPDATE wide SET c1 = 3") }, legacy: legacy)
        #expect(report.event == .adopted)
        let error = try storeError {
            _ = try launch({ try $0.execute("UPDATE wide SET c2000 = NULL") }, legacy: legacy)
        }
        #expect(error?.detail.contains("sets 1 value of wide.c2000 to NULL") == true, "\(String(describing: error))")
    }

    @Test(
        "An app step in Swift can rebuild a table and rename a column",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_025_000))
    func rebuildAndRename() throws {
        let statements = [
            "CREATE TABLE chat_new (id INTEGER PRIMARY KEY, body TEXT, draft TEXT, mood TEXT)",
            "INSERT INTO chat_new SELECT id, body, draft, mood FROM chat", "DROP TABLE chat",
            "ALTER TABLE chat_new RENAME TO chat", "ALTER TABLE chat RENAME COLUMN mood TO feeling",
            "ALTER TABLE chat RENAME COLUMN feeling TO temper", "ALTER TABLE chat ADD COLUMN more TEXT",
        ]
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        #expect(try fixture.launch(Self.configuration(statements, inSwift: true), recorded: 1).event == .adopted)
    }

    @Test("An app step in Swift loses the rows that it deletes, whatever it adds afterwards")
    func replacedRows() throws {
        let closures: [@Sendable (Connection) throws -> Void] = [
            { try $0.executeScript("DELETE FROM tag; INSERT INTO tag VALUES (7, 'x'), (8, 'y'), (9, 'z')") },
            {
                try $0.executeScript(
                    """
                    CREATE TEMP TABLE t AS SELECT * FROM tag; DELETE FROM tag;
                    INSERT INTO tag SELECT rowid, 'other ' || rowid FROM t; DROP TABLE t
                    """)
            },
            { connection in
                for number in 1...3 { try connection.execute("DELETE FROM tag WHERE chat = \(number)") }
                for number in 1...3 { try connection.execute("INSERT INTO tag VALUES (\(number), \("n\(number)"))") }
            },
        ]
        for body in closures {
            let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
            var configuration = Configuration(databaseName: "app.db", version: 2)
            configuration.launch.upgrade = { connection, _, _ in try body(connection) }
            let error = try storeError { try fixture.launch(configuration, recorded: 1) }
            #expect(error?.detail.contains("deletes 3 of 3 rows from tag") == true, "\(String(describing: error))")
        }
    }

    @Test("An app step that drops only empty objects is refused only by the policy refuse")
    func empty() throws {
        for policy in DestructiveChanges.allCases {
            let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
            let error = try storeError {
                try fixture.launch(
                    Self.configuration(["DROP TABLE empty"], inSwift: false, policy: policy), recorded: 1)
            }
            #expect((error?.code == .destructiveChanges) == (policy == .refuse))
        }
    }

    @Test("An app step may lose anything in a new database")
    func freshInstall() throws {
        let fixture = try MigrationFixture()
        let report = try fixture.launch(
            Self.configuration(
                ["INSERT INTO chat (id) VALUES (1)", "DELETE FROM chat"], inSwift: false, policy: .refuse))
        #expect(report.event == .created)
    }

    @Test(
        "An app step is refused before the next Swift step runs, because that could have effects outside the database"
    )
    func refusedBeforeSwift() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        let mark = fixture.folder.path("mark")
        var configuration = Self.configuration(["DELETE FROM tag"], inSwift: false)
        configuration.launch.upgrade = { _, _, _ in _ = FileManager.default.createFile(atPath: mark, contents: nil) }
        #expect(try storeError { try fixture.launch(configuration, recorded: 1) }?.code == .destructiveChanges)
        #expect(!FileManager.default.fileExists(atPath: mark))
        configuration.destructiveSteps = ["update 2"]
        try fixture.launch(configuration, recorded: 1)
        #expect(FileManager.default.fileExists(atPath: mark))
    }

    @Test("An app step can also be the upgrade hook, which has its own name")
    func hook() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        var configuration = Configuration(databaseName: "app.db", version: 2)
        configuration.launch.upgrade = { connection, _, _ in try connection.execute("DELETE FROM tag WHERE chat = 1") }
        let error = try storeError { try fixture.launch(configuration, recorded: 1) }
        #expect(
            error?.detail.contains("the step \"at the upgrade\" deletes 1 of 3 rows from tag") == true,
            "\(String(describing: error))"
        )
        configuration.destructiveSteps = ["at the upgrade"]
        #expect(try fixture.launch(configuration, recorded: 1).event == .adopted)
    }

    /// Makes tables with names that are not UTF-8, with two rows each.
    private static let odd: String = {
        func hex(_ text: String, _ byte: UInt8) -> String {
            "CAST(x'" + text.utf8.map { String(format: "%02x", $0 == UInt8(ascii: "?") ? byte : $0) }.joined()
                + "' AS TEXT)"
        }
        return """
            CREATE TABLE odd (id, cx TEXT); INSERT INTO odd VALUES (1, 'a'), (2, 'b');
            CREATE TABLE oddx (id); INSERT INTO oddx VALUES (1), (2);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = \(hex("CREATE TABLE odd (id, c? TEXT)", 0xff)) WHERE name = 'odd';
            UPDATE sqlite_master SET name = \(hex("odd?", 0xfe)), tbl_name = \(hex("odd?", 0xfe)),
                sql = \(hex("CREATE TABLE odd? (id)", 0xfe)) WHERE name = 'oddx';
            PRAGMA writable_schema = RESET
            """
    }()

    @Test(
        "An app step is also counted in tables and columns whose names are not UTF-8",
        arguments: [
            ("DELETE FROM odd WHERE id = 1", "deletes 1 of 2 rows from odd"),
            ("UPDATE odd SET id = NULL", "sets 2 values of odd.id to NULL"), ("UPDATE odd SET id = 7", nil),
        ] as [(String, String?)])
    func oddNames(sql: String, expected: String?) throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.odd)
        var configuration = Configuration(databaseName: "app.db", version: 2)
        configuration.launch.upgrade = { connection, _, _ in try connection.execute(SQL(text: sql)) }
        let error = try storeError { try fixture.launch(configuration, recorded: 1) }
        #expect((error == nil) == (expected == nil), "\(String(describing: error))")
        if let expected { #expect(error?.detail.contains(expected) == true, "\(String(describing: error))") }
    }

    @Test("An app step is reported with the rows and NULLs of each table, before and after")
    func effects() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        let configuration = Self.configuration(
            ["UPDATE chat SET draft = NULL WHERE id > 5", "INSERT INTO tag SELECT id, body FROM chat", Self.rebuild[0]]
                + Self.rebuild[1...], inSwift: false, policy: .allow)
        let plan = try fixture.with { try SchemaMigrator(configuration: configuration).rehearse($0) { 1 } }
        let effects = plan.operations.map(\.effects)
        #expect(plan.isRehearsed)
        #expect(
            effects[0] == [
                .init(
                    table: "chat", rowsBefore: 9, rowsAfter: 9,
                    columns: [.init(name: "draft", nullsBefore: 4, nullsAfter: 6)])
            ])
        #expect(effects[1] == [.init(table: "tag", rowsBefore: 3, rowsAfter: 12)])
        #expect(effects[4] == [.init(table: "chat", rowsBefore: 9, rowsAfter: nil, removedIndexes: ["chat_mood"])])
        #expect(effects[5] == [.init(table: "chat_new", rowsBefore: 9, rowsAfter: 9, renamedTo: "chat")])
        #expect(plan.operations.map(\.risk)[0...5] == [.losesData, .none, .none, .none, .losesData, .none])
    }

    @Test("An app step that destructiveSteps names must exist")
    func unknownName() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.legacy)
        let error = try storeError {
            try fixture.launch(Self.configuration([], inSwift: false, allowing: ["update 3"]), recorded: 1)
        }
        #expect(error?.code == .configuration)
        #expect(error?.advice == "the steps are baseline, update 2")
    }
}
