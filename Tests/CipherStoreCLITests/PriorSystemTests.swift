internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The tool on files of apps with a template database, and of apps with a version for each table.
@Suite struct PriorSystemTests {
    private let fixture: ToolFixture

    init() throws {
        fixture = try ToolFixture()
    }

    private func run(_ command: String, _ example: String, _ more: String...) throws -> ToolRun {
        let configuration = Repository.examples.appending(path: example).path(percentEncoded: false)
        return try fixture.run(
            [command, "--config", configuration, "--directory", ".", "--key-file", fixture.key] + more)
    }

    private func query(_ database: String, _ sql: String) throws -> String {
        try fixture.run("query", database, sql, "--key-file", fixture.key, "--csv").output
    }

    private func write(_ name: String, _ make: (Connection) throws -> Void) throws {
        try LegacyFile.write(fixture.folder.path(name), make)
    }

    /// Plans, which changes nothing, and then migrates.
    private func migrate(_ example: String, _ database: String) throws -> (plan: ToolRun, migrate: ToolRun) {
        let before = try fixture.snapshot()
        let plan = try run("plan", example)
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(try fixture.snapshot() == before)
        let migrate = try run("migrate", example)
        #expect(migrate.status == 0, "\(migrate.errors)")
        #expect(try fixture.run("verify", database, "--key-file", fixture.key).status == 0)
        return (plan, migrate)
    }

    // MARK: A template

    private static let template = "Template/NoteStore.json"

    @Test("A database from an older template is migrated with the user's rows")
    func migrateTemplate() throws {
        try write(TemplateApp.database) { try TemplateApp.writeDatabase($0, version: 1) }
        let runs = try migrate(Self.template, TemplateApp.database)
        #expect(runs.plan.output.contains("createTable unit"))
        #expect(runs.plan.output.contains("copyRows unit: the template contains 3 rows"))
        #expect(try query(TemplateApp.database, "SELECT id FROM note ORDER BY id") == "id\r\n5\r\n9\r\n12\r\n")
        #expect(try query(TemplateApp.database, "SELECT value FROM Records") == "value\r\n3\r\n")
        #expect(try fixture.folder.names == [TemplateApp.database])
    }

    @Test("A fresh install has the template's rows")
    func migrateTemplateFresh() throws {
        let runs = try migrate(Self.template, TemplateApp.database)
        #expect(runs.migrate.output.contains("created"))
        #expect(try query(TemplateApp.database, "SELECT count(*) FROM category") == "count(*)\r\n4\r\n")
    }

    @Test("A copy that holds the rows becomes the database if the database is missing")
    func migrateTemplateCopy() throws {
        try write(TemplateApp.temporary) { try TemplateApp.writeCopy($0) }
        let runs = try migrate(Self.template, TemplateApp.database)
        #expect(runs.plan.output.contains("will use dbLocalTemp.db, which contains the data, as the database"))
        #expect(runs.migrate.errors.contains("dbLocalTemp.db, which contains the data, was used instead"))
        #expect(try query(TemplateApp.database, "SELECT id FROM note ORDER BY id") == "id\r\n5\r\n9\r\n12\r\n")
        #expect(try fixture.folder.names == [TemplateApp.database])
    }

    @Test("A copy that holds no rows of its own is removed, and the database keeps its rows")
    func migrateTemplateBesideCopy() throws {
        try write(TemplateApp.database) { try TemplateApp.writeDatabase($0, version: 1) }
        try write(TemplateApp.temporary) { try TemplateApp.writeCopy($0, notes: 1) }
        let runs = try migrate(Self.template, TemplateApp.database)
        #expect(runs.migrate.errors.contains("dbLocalTemp.db, left by an upgrade of the app, was removed"))
        #expect(try fixture.folder.names == [TemplateApp.database])
        #expect(try query(TemplateApp.database, "SELECT id FROM note ORDER BY id") == "id\r\n5\r\n9\r\n12\r\n")
    }

    @Test("A missing template is refused, and nothing is changed")
    func refuseTemplate() throws {
        try write(TemplateApp.database) { try TemplateApp.writeDatabase($0, version: 1) }
        let configuration = try fixture.keys.write(
            #"{ "dbName": "dbLocal.db", "dbVersion": 3, "template": { "file": "db.db" } }"#, to: "config.json")
        let before = try fixture.snapshot()
        let run = try fixture.run(
            "migrate", "--config", configuration, "--directory", ".", "--key-file", fixture.key, "--json")
        #expect(run.status == 66)
        #expect(try run.failureCode() == "missingFile")
        #expect(try fixture.snapshot() == before)
    }

    // MARK: A version for each table

    private static let tableVersions = "TableVersions/MessageStore.json"
    private static let chats = "SELECT id, uid, body FROM chat ORDER BY id"
    private static let allChats = "id,uid,body\r\n5,ana,hello\r\n9,bo,\r\n4294967296,ana,late\r\n"

    @Test("Tables with separate versions are migrated with their rows")
    func migrateTableVersions() throws {
        try write(TableVersionsApp.database) { try TableVersionsApp.writeDatabase($0, release: 1) }
        _ = try migrate(Self.tableVersions, TableVersionsApp.database)
        #expect(try query(TableVersionsApp.database, Self.chats) == Self.allChats)
        #expect(
            try query(TableVersionsApp.database, "SELECT version FROM tableVersion WHERE name = 'chat'")
                == "version\r\n1.4\r\n")
    }

    @Test(
        "Rows that a killed upgrade left in tableOld are back in their table",
        arguments: [TableVersionsApp.Point.renamed, .created])
    func migrateLeftoverTable(point: TableVersionsApp.Point) throws {
        try write(TableVersionsApp.database) { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try TableVersionsApp.upgrade("chat", to: 3, until: point, connection)
        }
        let runs = try migrate(Self.tableVersions, TableVersionsApp.database)
        #expect(runs.plan.output.contains("tableOld"))
        #expect(try query(TableVersionsApp.database, Self.chats) == Self.allChats)
    }

    @Test("A table that is newer than the app is refused, and nothing is changed")
    func refuseTableVersions() throws {
        try write(TableVersionsApp.database) { connection in
            try TableVersionsApp.writeDatabase(connection, release: 2)
            try connection.execute("UPDATE tableVersion SET version = 9 WHERE name = 'contact'")
        }
        let before = try fixture.snapshot()
        let run = try run("migrate", Self.tableVersions, "--json")
        #expect(run.status == 78)
        #expect(try run.failureCode() == "downgrade")
        #expect(try fixture.snapshot() == before)
    }
}
