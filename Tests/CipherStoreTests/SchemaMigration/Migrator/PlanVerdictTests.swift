internal import CipherErrors
internal import CipherHistory
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct PlanVerdictTests {
    @Test(
        "For any database and configuration migrate does what plan says, and plan leaves every byte unchanged",
        arguments: 0..<20)
    func verdicts(part: Int) throws {
        let count = ProcessInfo.processInfo.environment["CIPHERSTORE_SEEDS"].flatMap { Int($0) } ?? 16
        for seed in (part * count)..<(part * count + count) {
            let life = try GeneratedMigration(seed: UInt64(seed))
            let before = try FolderDigest(life.folder.url, ignoring: ["-shm"])
            let plan = Result { try life.opening().plan(rehearsalLimit: 64 << 20) }
            #expect(try FolderDigest(life.folder.url, ignoring: ["-shm"]) == before, "seed \(seed)")
            let run = Result { try life.opening().run() }
            switch (plan, run) {
            case (.success(let plan), .success(let run)):
                #expect(
                    (plan.schema.operations + plan.schema.everyLaunch).map(\.title)
                        == run.report.migration.applied.map(\.title), "seed \(seed)")
                #expect(plan.schema.isRehearsed || plan.schema.operations.isEmpty, "seed \(seed)")
            case (.failure(let planned), .failure(let error)):
                let codes = [planned, error].map { ($0 as? StoreError)?.code }
                #expect(codes[0] == codes[1] && codes[0] != nil, "seed \(seed): \(planned)\nand \(error)")
            default: Issue.record("seed \(seed): \(plan)\nand \(run)\n\(life)")
            }
        }
    }
}

/// An old database and a configuration, as determined by a seed.
private struct GeneratedMigration: CustomStringConvertible {
    let folder: TemporaryFolder
    private var configuration: Configuration
    private let script: String

    var description: String { "\(script)\n\(configuration.schema)\n\(configuration.destructiveChanges)" }

    func opening() throws -> StoreOpening {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
    }

    init(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        folder = try TemporaryFolder()
        let name = random.pick(["person", "person", "persön", "\"per son\""])
        func named(_ sql: String) -> String {
            sql.replacingOccurrences(of: "\\bperson\\b", with: name, options: .regularExpression)
        }
        let baseline = Self.definitions(&random).map(named)
        let source = random.below(12)
        let updates = try Self.updates(after: baseline, named, &random)
        var script = baseline.joined(separator: ";\n") + ";\n" + named(Self.rows(&random))
        var version = random.oneIn(8) ? 3 : 1 + random.below(2)
        var schema: Configuration.SchemaSourceKind
        switch source {
        case 0...5:
            schema = .steps(
                MigrationSteps(
                    baseline: .sql(baseline),
                    updates: updates.enumerated().map { .init(SchemaVersion($0 + 2), .sql($1)) },
                    everyLaunch: random.oneIn(6) ? [random.pick(Self.pool)] : []))
            // The statements of the first step that an older system has run.
            if random.oneIn(3) {
                version = 1
                script += updates[0].prefix(random.below(updates[0].count + 1)).joined(separator: ";\n") + ";\n"
            }
        case 6...8: schema = .tables(Self.tables(name, &random))
        case 10...:
            schema = .template(.init(file: folder.path("template")))
            try Self.writeTemplate(baseline + updates[0].filter { !$0.contains(";") }, to: folder.path("template"))
            script += "CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '2');\n"
        default:
            schema = .tableVersions(
                Self.tables(name, &random).map { .init(name: $0.name, version: 2, definition: .columns($0.columns)) })
            script += """
                CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
                INSERT INTO tableVersion(name, version) VALUES ('\(name.replacingOccurrences(of: "\"", with: ""))', 1), ('team', \(1 + random.below(3)));

                """
        }
        script += "PRAGMA user_version = \(version);"
        // A record in a table, which is kept up to date.
        let hasRecord = random.oneIn(4)
        if hasRecord {
            script +=
                "CREATE TABLE version (v \(random.pick(["INTEGER", "TEXT", "REAL", ""]))); "
                + "INSERT INTO version VALUES (\(random.pick(["\(version)", "\(version)", "'1.10'", "1.1", "NULL", "'x'"])));"
        }
        self.script = script
        configuration = Configuration(
            databaseName: "app.db", version: try #require(SchemaVersion(random.pick(["3", "3", "3.10", "3.0.1"]))),
            encryption: .init(isEnabled: !random.oneIn(5)),
            recordedVersion: hasRecord
                ? .table(.init(table: "version", column: "v")) : source >= 10 ? nil : .userVersion, schema: schema,
            destructiveChanges: random.pick([.allow, .withhold, .refuse]))
        if case .steps = schema, random.oneIn(2) {
            configuration.destructiveSteps = [random.pick(["update 2", "update 3"])]
        }
        guard !random.oneIn(12) else { return }
        try write(script, isEncrypted: configuration.encryption.isEnabled && random.oneIn(3), isLog: random.oneIn(2))
    }

    /// Runs a script statement by statement, as the older system does, and ignores failed statements.
    private func write(_ script: String, isEncrypted: Bool, isLog: Bool) throws {
        // Some of its changes are only in the log, which a killed process leaves.
        try LegacyFile.write(folder.path("app.db"), key: isEncrypted ? TestKeys.raw() : nil, unclosed: isLog) {
            connection in
            if isLog { _ = try connection.value(String.self, "PRAGMA journal_mode = WAL") }
            let statements = SQL.statements(of: script)
            for part in [statements.prefix(6), statements.dropFirst(6)] {
                try connection.transaction {
                    for statement in part { try? connection.execute(SQL(text: statement)) }
                }
                if part.startIndex == 0, isLog { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint") }
            }
        }
    }

    private static func writeTemplate(_ statements: [String], to path: String) throws {
        try LegacyFile.write(path) { connection in
            for sql in statements { try? connection.execute(SQL(text: sql)) }
            try connection.executeScript(
                "CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '3')")
        }
    }

    // MARK: Random choices

    private static func definitions(_ random: inout SeededRandom) -> [String] {
        let name = random.pick(["TEXT", "TEXT COLLATE NOCASE", "TEXT NOT NULL", "VARCHAR(20) DEFAULT 'x'"])
        let age = random.pick(["INTEGER", "INTEGER CHECK (age >= 0)", "TEXT", "REAL", "", "NUMERIC"])
        return [
            "CREATE TABLE team (id INTEGER PRIMARY KEY, title TEXT UNIQUE)",
            "CREATE TABLE person (id INTEGER PRIMARY KEY, name \(name), age \(age), note TEXT, "
                + "team INTEGER REFERENCES team(id))",
            "CREATE TABLE tag (person INTEGER, tag TEXT, PRIMARY KEY (person, tag))"
                + random.pick(["", " WITHOUT ROWID"]),
            "CREATE TABLE log (at REAL, text BLOB)",
        ]
            + random.some(
                3,
                of: [
                    "CREATE INDEX person_name ON person(name)", "CREATE VIEW names AS SELECT name FROM person",
                    "CREATE TRIGGER noted AFTER UPDATE ON person BEGIN INSERT INTO log VALUES (1, new.name); END",
                    "CREATE TRIGGER kept BEFORE DELETE ON team BEGIN SELECT raise(ABORT, 'kept'); END",
                    "CREATE INDEX log_at ON log(at) WHERE at > 1", "CREATE VIRTUAL TABLE words USING fts4(word)",
                ])
    }

    private static func rows(_ random: inout SeededRandom) -> String {
        let values = [
            "NULL", "''", "'ana'", "'Ana'", "'bo'", "1", "-1", "3.5", "x'00ff'", "9223372036854775807", "'12'",
            "'1e400'",
        ]
        var text = ""
        for id in 1...(1 + random.below(12)) {
            text +=
                "INSERT INTO person VALUES (\(id), \(random.pick(values)), \(random.pick(values)), "
                + "\(random.pick(values)), \(random.pick(["NULL", "1", "2", "9"])));\n"
            text += "INSERT INTO log VALUES (\(random.pick(values)), \(random.pick(values)));\n"
            text += "INSERT INTO tag VALUES (\(random.below(3)), \(random.pick(values)));\n"
            if id < 3 { text += "INSERT INTO team VALUES (\(id), \(random.pick(values)));\n" }
        }
        return text
    }

    private static let pool: [String] =
        [
            "ALTER TABLE person ADD COLUMN mail TEXT", "ALTER TABLE person ADD COLUMN score INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE person ADD COLUMN must TEXT NOT NULL",
            "ALTER TABLE log ADD COLUMN level INTEGER CHECK (level > 0)",
            "CREATE UNIQUE INDEX person_u ON person(name)", "CREATE UNIQUE INDEX person_a ON person(age)",
            "CREATE UNIQUE INDEX person_l ON person(lower(name)) WHERE id > 2", "CREATE INDEX log_t ON log(text)",
            "UPDATE person SET age = age + 1", "UPDATE person SET age = abs(age)", "UPDATE person SET name = NULL",
            "UPDATE person SET note = NULL WHERE id > 3", "UPDATE tag SET tag = 'x'", "UPDATE person SET id = id + 1",
            "DELETE FROM log", "DELETE FROM log WHERE at > 1", "DELETE FROM person WHERE id = 2", "DELETE FROM team",
            "INSERT INTO team VALUES (1, 'A')", "INSERT INTO person (id, name) VALUES (3, 'z')",
            "INSERT OR IGNORE INTO team VALUES (1, 'A')", "INSERT OR REPLACE INTO person (id, name) VALUES (1, 'r')",
            "INSERT INTO person (id, name) SELECT id + 100, name FROM person", "DROP TABLE log", "DROP TABLE tag",
            "CREATE TABLE fresh (a INTEGER PRIMARY KEY, b TEXT UNIQUE)", "INSERT INTO fresh VALUES (1, 'a'), (2, 'a')",
            "CREATE TABLE copied AS SELECT * FROM log", "INSERT INTO log SELECT id, name FROM person",
            "CREATE TRIGGER more AFTER INSERT ON log BEGIN UPDATE team SET title = new.text; END",
            "CREATE VIEW IF NOT EXISTS names AS SELECT note FROM person", "ALTER TABLE log RENAME TO journal",
            "CREATE TABLE person_new (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER)",
            "INSERT INTO person_new SELECT id, name, age FROM person", "DROP TABLE person",
            "ALTER TABLE person_new RENAME TO person", "UPDATE team SET title = (SELECT 1 / 0 + abs(name) FROM person)",
            "INSERT INTO tag SELECT id, name FROM person", "SELECT name FROM person", "PRAGMA user_version = 7",
            "INSERT INTO words SELECT name FROM person", "INSERT INTO words VALUES ('a b')", "DROP TABLE words",
            "DELETE FROM words", "CREATE TEMP TABLE spare AS SELECT * FROM log", "INSERT INTO log SELECT * FROM spare",
            "REPLACE INTO tag SELECT id, note FROM person", "UPDATE OR REPLACE tag SET person = 1",
            "CREATE TABLE person_all AS SELECT * FROM person",
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts4(word)",
        ]
        + (Engine.current.sqliteVersionNumber < 3_035_000
            ? []
            : [
                "ALTER TABLE person RENAME COLUMN note TO remark", "ALTER TABLE person DROP COLUMN note",
                "ALTER TABLE person ADD COLUMN twice INTEGER GENERATED ALWAYS AS (abs(age)) VIRTUAL NOT NULL",
                "INSERT INTO team VALUES (1, 'B') ON CONFLICT (id) DO UPDATE SET title = NULL",
            ])

    private static func statements(_ random: inout SeededRandom) -> [String] {
        guard random.oneIn(3) else { return random.some(4, of: pool) }
        // A rebuilt table.
        let begin = pool.firstIndex { $0.hasPrefix("CREATE TABLE person_new") } ?? 0
        return random.some(2, of: pool) + pool[begin..<(begin + 4)] + random.some(1, of: pool)
    }

    /// Returns the statements of two steps, most of which succeed on an empty database.
    private static func updates(
        after baseline: [String], _ named: (String) -> String, _ random: inout SeededRandom
    ) throws -> [[String]] {
        let trial = try Connection(path: "", mode: .create)
        defer { trial.close() }
        for sql in baseline { try trial.execute(SQL(text: sql)) }
        let keepsAll = random.oneIn(12)
        return (2...3).map { _ in
            statements(&random).map(named).filter { sql in
                let isTaken: Void? = try? trial.execute(SQL(text: sql))
                return keepsAll || isTaken != nil && !sql.hasPrefix("PRAGMA")
            }
        }
    }

    private static func tables(_ name: String, _ random: inout SeededRandom) -> [DeclaredTable] {
        let name = name.replacingOccurrences(of: "\"", with: "")
        let text = [
            "TEXT", "TEXT NOT NULL", "TEXT NOT NULL DEFAULT 'x'", "INTEGER", "TEXT UNIQUE", "TEXT CHECK (name <> 'bo')",
        ]
        let number = ["INTEGER", "REAL", "INTEGER NOT NULL", "TEXT", "INTEGER CHECK (age > 0)", "BLOB UNIQUE"]
        var columns = [
            DeclaredTable.Column(name: "id", definition: "INTEGER PRIMARY KEY"),
            .init(name: "name", definition: random.pick(text)), .init(name: "age", definition: random.pick(number)),
        ]
        if random.oneIn(2) { columns.append(.init(name: "note", definition: "TEXT")) }
        if random.oneIn(2) { columns.append(.init(name: "team", definition: "INTEGER REFERENCES team(id)")) }
        if random.oneIn(3) { columns.append(.init(name: "extra", definition: random.pick(["TEXT", "TEXT NOT NULL"]))) }
        var tables = [DeclaredTable(name: name, columns: columns)]
        if random.oneIn(2) {
            tables[0].isStrict = Engine.current.sqliteVersionNumber >= 3_037_000 ? random.oneIn(3) : nil
        }
        if random.oneIn(2) {
            tables.append(
                DeclaredTable(
                    name: "team",
                    columns: [
                        .init(name: "id", definition: "INTEGER PRIMARY KEY"),
                        .init(name: "title", definition: random.pick(["TEXT", "TEXT NOT NULL", "INTEGER"])),
                    ]))
        }
        return tables
    }
}
