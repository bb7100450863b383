internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Foundation
import Testing

/// The version as the number of migrations that a table lists as applied.
struct AppliedMigrationsTests {
    let folder: TemporaryFolder
    let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(path: folder.path("app.db"), mode: .create)
    }

    private func apply(_ names: [String]) throws {
        try connection.executeScript("CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        for name in names { try connection.execute("INSERT INTO grdb_migrations VALUES (\(name))") }
    }

    private func read(_ migrations: RecordedVersion.AppliedMigrations) throws -> SchemaVersion? {
        try RecordedVersion.migrations(migrations)
            .read(from: connection, databasePath: folder.path("app.db"), .asWritten)
    }

    @Test(
        "The version is the number of leading migrations that are applied, in any order in the table",
        arguments: [([], 0), (["a"], 1), (["a", "b"], 2), (["c", "a", "b"], 3)] as [([String], Int)])
    func prefix(names: [String], expected: Int) throws {
        try apply(names)
        #expect(try read(.init(["a", "b", "c"])) == SchemaVersion(expected))
    }

    @Test func `Without the table no migration is applied`() throws {
        #expect(try read(.init(["a"])) == .zero)
    }

    @Test(
        "If the applied migrations are not the first ones, the error names the missing one",
        arguments: [
            (["a", "c"], "but not \"b\""), (["b", "c"], "but not \"a\""),
            (["a", "s3cret"], "does not contain the migration \"b\""),
            (["s3cret"], "does not contain the migration \"a\""), (["c", "s3cret"], "but not \"a\""),
        ] as [([String], String)])
    func gaps(names: [String], expected: String) throws {
        try apply(names)
        let error = try #require(try storeError { try read(.init(["a", "b", "c"])) })
        #expect(error.code == .recordedVersion)
        #expect(error.detail.contains(expected))
        #expect(!error.description.contains("s3cret"))
    }

    @Test func `All migrations and more are those of a newer app`() throws {
        try apply(["a", "b", "s3cret", "t"])
        let error = try #require(try storeError { try read(.init(["a", "b"])) })
        #expect(error.code == .downgrade)
        #expect(error.detail.contains("all listed migrations, up to \"b\", and also 2 unlisted migrations"))
        #expect(!error.description.contains("s3cret"))
    }

    @Test(
        "A migration that replaced others stands for them",
        arguments: [
            (["all"], 3), (["a", "b"], 2), (["all", "d"], 4), (["all", "a", "d"], 4), (["d"], 4), (["a", "all"], 3),
        ] as [([String], Int)])
    func merged(names: [String], expected: Int) throws {
        try apply(names)
        let merged = ["all": ["a", "b", "c"], "d": ["a", "b", "c"]]
        #expect(try read(.init(["a", "b", "c", "d"], merged: merged)) == SchemaVersion(expected))
    }

    @Test func `Migrations that are named by numbers are found by their text`() throws {
        try connection.executeScript(
            """
            CREATE TABLE schema_migrations(version INTEGER UNIQUE NOT NULL);
            INSERT INTO schema_migrations VALUES (20160119131206019), (0);
            """)
        let list = RecordedVersion.AppliedMigrations(
            ["0", "20160119131206019", "20160201000000000"], table: "Schema_Migrations", column: "VERSION")
        #expect(try read(list) == 2)
    }

    @Test(
        "A table without names of migrations is refused",
        arguments: [
            ("CREATE TABLE grdb_migrations AS SELECT NULL AS identifier", "not the name of a migration"),
            ("CREATE TABLE grdb_migrations AS SELECT 1.5 AS identifier", "not the name of a migration"),
            ("CREATE TABLE grdb_migrations AS SELECT x'61' AS identifier", "not the name of a migration"),
            ("CREATE TABLE grdb_migrations(name)", "has no column \"identifier\""),
            ("CREATE VIEW grdb_migrations AS SELECT 'a' AS identifier", "not an ordinary table"),
        ])
    func noTable(script: String, expected: String) throws {
        try connection.executeScript(text: script)
        let error = try #require(try storeError { try read(.init(["a"])) })
        #expect(error.code == .recordedVersion)
        #expect(error.detail.contains(expected))
    }

    @Test(
        "An impossible list of migrations is a configuration error",
        arguments: [
            ([], [:], "identifiers: the list contains no migrations"),
            (["a", "b", "a"], [:], "identifiers: the list contains \"a\" twice"),
            (["a"], ["m": []], "merged: \"m\" does not replace any migrations"),
            (["a"], ["m": ["a", "b"]], "merged: \"b\", which \"m\" replaces, is not in identifiers"),
        ] as [([String], [String: [String]], String)])
    func faults(names: [String], merged: [String: [String]], expected: String) throws {
        try apply(["a"])
        let error = try #require(try storeError { try read(.init(names, merged: merged)) })
        #expect(error.code == .configuration)
        #expect(error.detail == "recordedVersion.\(expected)")
    }
}
