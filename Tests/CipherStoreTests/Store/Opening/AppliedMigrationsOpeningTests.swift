internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A store that continues from an app that recorded its migrations by name in a table.
struct AppliedMigrationsOpeningTests {
    /// The app's migrations in order, as its older releases ran them.
    private static let migrations = [
        ("notes", "CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT NOT NULL)"),
        ("authors", "ALTER TABLE note ADD COLUMN author TEXT"),
        ("tags", "CREATE TABLE tag(name TEXT PRIMARY KEY)"),
    ]

    /// The same migrations as steps, and one that only the new release has.
    private static var configuration: Configuration {
        Configuration(
            databaseName: "app.db", version: 4,
            recordedVersion: .migrations(.init(migrations.map(\.0))),
            schema: .steps(
                MigrationSteps(
                    baseline: .sql([migrations[0].1]),
                    updates: [
                        .init(2, .sql([migrations[1].1])), .init(3, .sql([migrations[2].1])),
                        .init(4, .sql(["ALTER TABLE note ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0"])),
                    ])))
    }

    /// Makes a file of a release with the given number of migrations, and with other names in its table.
    private static func file(_ count: Int, besides others: [String] = [], key: CipherKey? = nil) throws -> LegacyFile {
        try LegacyFile { connection in
            if let key { try connection.setKey(key, settings: CipherSettings()) }
            try connection.executeScript("CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
            for (name, sql) in migrations.prefix(count) {
                try connection.executeScript(text: sql)
                try connection.execute("INSERT INTO grdb_migrations VALUES (\(name))")
            }
            for name in others { try connection.execute("INSERT INTO grdb_migrations VALUES (\(name))") }
            if count > 0 { try connection.execute("INSERT INTO note(id, body) VALUES (7, 'first')") }
        }
    }

    private static func opening(_ file: LegacyFile, _ configuration: Configuration) throws -> StoreOpening {
        try StoreOpening(
            configuration: configuration, directory: file.folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
    }

    @Test(
        "The steps continue after the last applied migration, as planned, and the store records the version",
        arguments: [1, 2, 3], [true, false])
    func goesOn(count: Int, isEncrypted: Bool) throws {
        let file = try Self.file(count, key: isEncrypted ? TestKeys.raw() : nil)
        let opening = try Self.opening(file, Self.configuration)
        let plan = try opening.plan(rehearsalLimit: 1 << 20)
        let report = try opening.run().report
        #expect(report.migration.from == SchemaVersion(count))
        #expect(report.outcome == (isEncrypted ? .opened : .encrypted))
        #expect(plan.schema.operations.map(\.title) == report.migration.applied.map(\.title))
        try file.read(key: TestKeys.raw()) { db in
            #expect(try db.values(String.self, "SELECT id || body || pinned FROM note") == ["7first0"])
            #expect(try db.value(Int.self, "PRAGMA user_version") == 4)
            #expect(try db.value(String.self, "SELECT max(toVersion) FROM cipherstore_history") == "4")
            // Remaining code of the app would run none of its migrations again.
            let names = try db.values(String.self, "SELECT identifier FROM grdb_migrations ORDER BY rowid")
            #expect(names == Self.migrations.map(\.0))
        }
        let again = try Self.opening(file, Self.configuration).run().report
        #expect(again.outcome == .opened)
        #expect(again.migration.applied.isEmpty)
    }

    @Test(
        "A set of migrations after which no step can continue is refused, and nothing is changed",
        arguments: [
            (1, ["tags"], StoreError.Code.recordedVersion), (1, ["later"], .recordedVersion),
            (3, ["later"], .downgrade),
            // There are tables, but no migration that made them.
            (0, [], .recordedVersion),
        ] as [(Int, [String], StoreError.Code)], [true, false])
    func refuses(_ table: (count: Int, others: [String], code: StoreError.Code), isEncrypted: Bool) throws {
        let file = try Self.file(table.count, besides: table.others, key: isEncrypted ? TestKeys.raw() : nil)
        if table.count == 0 {
            try file.read(key: isEncrypted ? TestKeys.raw() : nil) { try $0.executeScript("CREATE TABLE note(id)") }
        }
        let before = try file.digest()
        let opening = try Self.opening(file, Self.configuration)
        #expect(try storeError { try opening.plan(rehearsalLimit: 1 << 20) }?.code == table.code)
        #expect(try storeError { try opening.run() }?.code == table.code)
        #expect(try file.digest() == before)
    }

    @Test("A database with no table but that of the migrations is a new one")
    func isNew() throws {
        let file = try Self.file(0)
        let report = try Self.opening(file, Self.configuration).run().report
        #expect(report.launch == .firstInstall)
        let tables = try file.read(key: TestKeys.raw()) { db in
            try db.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        }
        #expect(tables == ["cipherstore_history", "grdb_migrations", "note", "tag"])
    }

    @Test("Once the store has recorded a version, the app's table is ignored, whatever it contains")
    func countsNoLonger() throws {
        let file = try Self.file(2)
        _ = try Self.opening(file, Self.configuration).run()
        try file.read(key: TestKeys.raw()) { db in
            try db.executeScript("DELETE FROM grdb_migrations; INSERT INTO grdb_migrations VALUES ('tags'), ('later')")
        }
        let report = try Self.opening(file, Self.configuration).run().report
        #expect(report.migration.applied.isEmpty)
        #expect(report.migration.from == 4)
    }

    @Test("A table that needs more than the name of each migration is left unchanged")
    func asksForMore() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                """
                CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
                CREATE TABLE applied(name TEXT PRIMARY KEY, at TEXT NOT NULL);
                INSERT INTO applied VALUES ('notes', '2026-01-02');
                """)
        }
        var configuration = Self.configuration
        configuration.recordedVersion = .migrations(
            .init(Self.migrations.map(\.0), table: "applied", column: "name"))
        for version in [1, 4] as [SchemaVersion] {
            let report = try Self.opening(file, configuration).run().report
            #expect(report.migration.from == version)
        }
        let names = try file.read(key: TestKeys.raw()) { try $0.values(String.self, "SELECT name FROM applied") }
        #expect(names == ["notes"])
    }

    @Test("The table of migrations is kept even if undeclared tables are dropped")
    func isKept() throws {
        let file = try Self.file(3)
        var configuration = Self.configuration
        configuration.schema = .tables([
            DeclaredTable(name: "note", columns: [.init(name: "id", definition: "INTEGER PRIMARY KEY")])
        ])
        configuration.destructiveChanges = .allow
        let report = try Self.opening(file, configuration).run().report
        #expect(report.migration.withheld.map(\.table) == ["grdb_migrations"])
        let tables = try file.read(key: TestKeys.raw()) { db in
            try db.values(String.self, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        }
        #expect(tables == ["cipherstore_history", "grdb_migrations", "note"])
    }

    @Test("A configuration file names the migrations, and those that replaced others")
    func section() throws {
        let json = #"""
            {"dbName": "a.db", "dbVersion": 3, "recordedVersion": {"source": "migrations", "identifiers": ["a", 2, "c"],
             "merged": {"m": ["a", 2]}, "table": "schema_migrations", "column": "version"}}
            """#
        guard
            case .migrations(let found) =
                try Configuration(data: Data(json.utf8), place: "app.json").recordedVersion
        else {
            Issue.record("the version is recorded elsewhere")
            return
        }
        #expect(
            found
                == .init(
                    ["a", "2", "c"], merged: ["m": ["a", "2"]], table: "schema_migrations", column: "version"))
        let short = #"""
            {"dbName": "a.db", "dbVersion": 1, "recordedVersion": {"source": "migrations", "identifiers": ["a"]}}
            """#
        guard
            case .migrations(let ofGRDB) =
                try Configuration(data: Data(short.utf8), place: "app.json").recordedVersion
        else {
            Issue.record("the version is recorded elsewhere")
            return
        }
        #expect(ofGRDB == .init(["a"], table: "grdb_migrations", column: "identifier"))
    }
}
