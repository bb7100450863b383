internal import CipherErrors
internal import CipherHistory
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The texts of errors and plans.
struct MigrationErrorTextTests {
    @Test(
        "An error in a declaration names its place in the configuration",
        arguments: [
            (#""tableVersions": { "badge": { "version": 1, "sql": "CREATE TABLE badge(" } }"#, "tableVersions.badge"),
            (#""tableVersions": { "badge": { "version": 1, "sql": "CREATE TABLE other(a)" } }"#, "tableVersions.badge"),
            (
                #""tableVersions": { "badge": { "version": 1, "sql": "CREATE TABLE badge(a)", "indexes": ["CREATE INDEX i ON nosuch(a)"] } }"#,
                "tableVersions.badge.indexes[0]"
            ),
            (#""tableVersions": { "badge": { "version": 1 } }"#, "\"columns\" or \"sql\""),
            (#""dbTables": [ { "badge": [ { "id": "TEXT )" } ] } ]"#, "badge"),
        ])
    func namesFile(section: String, place: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(#"{ "dbName": "im.db", "dbVersion": 1, \#(section) }"#, to: "app.json")
        let error = try #require(
            try storeError {
                try StoreOpening(
                    configuration: Configuration(contentsOf: URL(fileURLWithPath: path)),
                    directory: folder.url.path(percentEncoded: false), provider: TestKeys.provider()
                ).run()
            })
        #expect(error.code == .configuration)
        #expect(error.path == path)
        #expect(error.detail.contains(place))
    }

    @Test(
        "A reported difference states what differs",
        arguments: [
            ("home TEXT", "home TEXT COLLATE NOCASE", "COLLATE NOCASE"),
            ("home TEXT, x AS (home || 'a')", "home TEXT, x AS (home || 'b')", "GENERATED"),
        ])
    func saysDifference(old: String, new: String, word: String) throws {
        guard word != "GENERATED" || Engine.current.hasGeneratedColumns else { return }
        let reason = try reasons(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, \(old))", "CREATE TABLE t(id INTEGER PRIMARY KEY, \(new))")
        let parts = reason.components(separatedBy: " in the schema, but as ")
        try #require(parts.count == 2, "\(reason)")
        #expect(reason.uppercased().contains(word))
        #expect(!"\(parts[0]) in the database".hasSuffix("as " + parts[1]))
    }

    @Test("A rebuild that discards AUTOINCREMENT reports this")
    func saysAutoincrement() throws {
        let reason = try reasons(
            "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a)", "CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        #expect(reason.contains("AUTOINCREMENT"))
    }

    private func reasons(_ old: String, _ new: String) throws -> String {
        let folder = try TemporaryFolder()
        try LegacyFile.write(folder.path("app.db"), script: "\(old); INSERT INTO t(id) VALUES (1)")
        let configuration = Configuration(
            databaseName: "app.db", version: 1,
            schema: .tableVersions([.init(name: "t", version: 1, definition: .sql(new))]))
        let plan = try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).plan().schema
        return
            (plan.operations.filter { $0.table == "t" }.map(\.reason) + plan.findings.map(\.message)
            + plan.withheld.map(\.reason)).joined(separator: "; ")
    }

    @Test("A refusal because of the app's copy names the copy, not the missing database")
    func namesCopy() throws {
        let fixture = try PriorFixture("Template/NoteStore.json")
        try fixture.write(TemplateApp.temporary) { connection in
            try TemplateApp.writeDatabase(connection, version: 2)
            try connection.executeScript("UPDATE Records SET value = '9' WHERE name = 'DBVersion'")
        }
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .downgrade)
        #expect(error.path?.hasSuffix(TemplateApp.temporary) == true)
        let planned = try #require(try storeError { try fixture.plan() })
        #expect(planned.path?.hasSuffix(TemplateApp.temporary) == true)
    }
}
