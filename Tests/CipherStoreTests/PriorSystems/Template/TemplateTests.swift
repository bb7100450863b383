internal import CipherErrors
internal import CipherHistory
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct TemplateTests {
    let fixture: PriorFixture

    init() throws {
        fixture = try PriorFixture("Template/NoteStore.json")
    }

    private static let notes = ["5 first", "9 -", "12 "]

    private func notes() throws -> [String] {
        try fixture.values("SELECT id || ' ' || coalesce(title, '-') FROM note ORDER BY id")
    }

    // MARK: Every version

    @Test(
        "An app with a template database is migrated from every older version to a fresh install's schema",
        arguments: TemplateApp.versions)
    func migrates(version: Int) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: version) }
        let report = try fixture.open()
        #expect(report.outcome == .encrypted)
        #expect(report.migration.from == SchemaVersion(version))
        #expect(try fixture.shape() == fixture.fresh().shape())
        #expect(try notes() == Self.notes)
        #expect(
            try fixture.values("SELECT coalesce(body, '-') FROM note WHERE id = 5") == [version >= 2 ? "a body" : "-"])
        #expect(try fixture.values("SELECT seq FROM sqlite_sequence WHERE name = 'note'") == ["4294967296"])
        #expect(try fixture.values("SELECT value FROM Records WHERE name = 'DBVersion'") == ["3"])
        #expect(try fixture.values("PRAGMA user_version") == ["3"])
        #expect(try fixture.open().migration.applied.isEmpty)
    }

    @Test("An app with a template database starts a fresh install with the template's schema and rows")
    func creates() throws {
        let report = try fixture.open()
        #expect(report.outcome == .created)
        let template = try Connection(path: Repository.examples.path + "/Template/db.db", mode: .readOnly)
        func rows(_ connection: Connection) throws -> [String] {
            try DatabaseDump(connection).lines.filter { line in
                ["Records", "note", "category", "tip", "unit", "change"].contains { line.hasPrefix("\($0): ") }
            }
        }
        #expect(try fixture.read(rows) == rows(template))
        #expect(try rows(template).count == 10)
    }

    @Test("An app with a template database reads the template and leaves it unchanged, byte for byte")
    func leavesTemplate() throws {
        let folder = Repository.examples.appending(path: "Template")
        let before = try FolderDigest(folder)
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        try fixture.open()
        _ = try fixture.fresh()
        #expect(try FolderDigest(folder) == before)
    }

    // MARK: Seeds

    @Test(
        "An app with a template database adds seed rows without changing the user's",
        arguments: TemplateApp.versions)
    func bringsSeeds(version: Int) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: version) }
        try fixture.open()
        // Rows that the user deleted return with a higher version, as with the app's own upgrade.
        #expect(
            try fixture.values("SELECT code || ' ' || name FROM category ORDER BY code")
                == ["home At home", "misc Miscellaneous", "trip My trips", "work Arbeit"])
        // A table without a key does not show which of the template's rows it has.
        #expect(try fixture.values("SELECT text FROM tip") == ["Swipe to delete"])
        #expect(try fixture.values("SELECT id || typeof(factor) FROM unit ORDER BY id") == ["1real", "2real", "7real"])
        // The app's own upgrade began with the template's rows in place, so no trigger recorded them.
        #expect(try fixture.values("SELECT code FROM change") == [])
        try fixture.read { try $0.execute("INSERT INTO category(code) VALUES ('x')") }
        #expect(try fixture.values("SELECT code FROM change") == ["x"])
    }

    @Test("An app with a template database does not restore a deleted seed while the version stays the same")
    func leavesDeletedSeeds() throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        try fixture.open()
        try fixture.read { try $0.execute("DELETE FROM category WHERE code = 'home'") }
        #expect(try fixture.open().migration.applied.isEmpty)
        #expect(try fixture.values("SELECT count(*) FROM category WHERE code = 'home'") == ["0"])
    }

    @Test("An app with a template database copies every kind of value exactly, whatever its size")
    func copiesExactly() throws {
        var fixture = fixture
        let file = try LegacyFile(named: "own.db") { connection in
            try connection.executeScript(
                """
                CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', 3);
                CREATE TABLE thing (id INTEGER PRIMARY KEY, a, "a ""b"" c" TEXT);
                INSERT INTO thing VALUES (-9223372036854775808, 0.1, 'x''y'), (2, 9e999, NULL), (3, -5e-324, ''), (4, 9223372036854775807, 'z'),
                    (5, x'', char(0) || 'q'), (6, zeroblob(3000000), '梨');
                """)
        }
        fixture.configuration.schema = .template(.init(file: file.path))
        try fixture.open()
        func rows(_ connection: Connection) throws -> [String] {
            try DatabaseDump(connection).lines.filter { $0.hasPrefix("thing: ") }
        }
        #expect(try fixture.read(rows) == file.readOriginal(rows))
    }

    @Test("An app with a template database counts seeds whose unique values a large table has under other keys")
    func countsExcludedSeeds() throws {
        var fixture = fixture
        func rows(_ first: Int, _ prefix: String) -> String {
            """
            WITH n(i) AS (VALUES (\(first)) UNION ALL SELECT i + 1 FROM n WHERE i < \(first) + 16000)
                INSERT INTO thing SELECT i, '\(prefix)' || i FROM n;
            """
        }
        func records(_ version: Int) -> String {
            "CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '\(version)');"
        }
        let file = try LegacyFile(named: "own.db") { connection in
            try connection.executeScript(
                text: records(3) + "CREATE TABLE thing (id INTEGER PRIMARY KEY, code TEXT UNIQUE);"
                    + rows(1_000_000, "t") + "INSERT INTO thing VALUES (-1, 'u7'), (5, 'u5'), (-2, 'u8');")
        }
        fixture.configuration.schema = .template(.init(file: file.path))
        try fixture.write { connection in
            try connection.executeScript(
                text: records(2) + "CREATE TABLE thing (id INTEGER PRIMARY KEY, code TEXT);" + rows(1, "u"))
        }
        let report = try fixture.open()
        let warnings = report.migration.findings.filter { $0.severity == .warning && $0.table == "thing" }
        #expect(warnings.map(\.count) == [2])
        #expect(try fixture.values("SELECT count(*) FROM thing") == ["32002"])
    }

    // MARK: Objects that the template lacks

    @Test("An app with a template database keeps the user's own tables and columns, and reports them")
    func withholds() throws {
        try fixture.write { connection in
            try TemplateApp.writeDatabase(connection, version: 1)
            try connection.executeScript(
                "CREATE TABLE mine (x); INSERT INTO mine VALUES (1), (2); ALTER TABLE note ADD COLUMN own TEXT; UPDATE note SET own = 'kept'"
            )
        }
        let report = try fixture.open()
        #expect(Set(report.migration.withheld.map(\.table)) == ["mine", "note"])
        #expect(
            try fixture.values("SELECT count(*) FROM mine UNION ALL SELECT own FROM note WHERE id = 5") == [
                "2", "kept",
            ])
    }

    @Test("An app with a template database follows declared renames of tables and columns")
    func renames() throws {
        var fixture = fixture
        fixture.configuration.schema = .template(
            .init(
                file: Repository.examples.path + "/Template/db.db", renamedTables: ["note": "memo"],
                renamedColumns: ["note": ["title": "heading"]]))
        try fixture.write { connection in
            try connection.executeScript(
                """
                CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '2');
                CREATE TABLE memo (id INTEGER PRIMARY KEY AUTOINCREMENT, heading TEXT, body TEXT);
                INSERT INTO memo VALUES (5, 'first', 'a body');
                """)
        }
        try fixture.open()
        #expect(try fixture.values("SELECT id || title || body FROM note") == ["5firsta body"])
        #expect(try fixture.shape() == fixture.fresh().shape())
    }

    // MARK: Errors

    @Test(
        "An app with a template database is left unchanged by a failure at any position of the plan",
        arguments: [1, 2])
    func failsAnywhere(version: Int) throws {
        try fixture.write { try TemplateApp.writeDatabase($0, version: version) }
        let (changed, count) = try fixture.positionsThatChange()
        #expect(changed.isEmpty)
        #expect(count > 6)
    }

    @Test("A row that does not fit the template prevents the upgrade, and the user's file stays unchanged")
    func refusesUnfittingRows() throws {
        var fixture = fixture
        let file = try LegacyFile(named: "own.db") { connection in
            try connection.executeScript(
                """
                CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '3');
                CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL);
                """)
        }
        fixture.configuration.schema = .template(.init(file: file.path))
        fixture.configuration.destructiveChanges = .allow
        try fixture.write { try TemplateApp.writeDatabase($0, version: 1) }
        let before = try fixture.digest()
        #expect(try storeError { try fixture.open() }?.code == .migration)
        #expect(try fixture.digest() == before)
    }
}
