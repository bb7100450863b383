internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The keys `template` and `tableVersions`.
struct SchemaSourceSectionTests {
    private func configuration(_ source: String, place: String = "/app/config/app.json") throws -> Configuration {
        try Configuration(
            data: Data(#"{ "dbName": "local.db", "dbVersion": 3, \#(source) }"#.utf8), place: place)
    }

    private func detail(_ source: String) throws -> String? {
        try storeError { try configuration(source) }?.detail
    }

    // MARK: template

    @Test(
        "The template's path is relative to the configuration",
        arguments: [
            ("db.db", "/app/config/app.json", "/app/config/db.db"),
            ("../db.db", "/app/config/app.json", "/app/config/../db.db"),
            ("/srv/db.db", "/app/config/app.json", "/srv/db.db"), ("db.db", "app.json", "./db.db"),
            ("sub/db.db", "/app.json", "/sub/db.db"),
        ])
    func path(file: String, place: String, expected: String) throws {
        let configuration = try configuration(#""template": { "file": "\#(file)" }"#, place: place)
        guard case .template(let template) = configuration.schema else {
            Issue.record("the schema source is not a template")
            return
        }
        #expect(template.file == expected)
    }

    @Test(
        "The copy of an interrupted upgrade is named after the database",
        arguments: [
            ("dbLocal.db", "dbLocalTemp.db"), ("local", "localTemp"), ("a.b.sqlite", "a.bTemp.sqlite"),
            (".hidden", ".hiddenTemp"),
        ])
    func temporaryName(database: String, expected: String) {
        #expect(SchemaTemplate(file: "x").temporaryName(of: database) == expected)
        #expect(SchemaTemplate(file: "x", temporary: "y").temporaryName(of: database) == "y")
    }

    @Test func `The version of an app with a template is in Records unless it says otherwise`() throws {
        guard case .table(let column) = try configuration(#""template": { "file": "x" }"#).recordedVersion else {
            Issue.record("the version is recorded elsewhere")
            return
        }
        #expect(column == .init(table: "Records", column: "value", filter: ["name": "DBVersion"]))
        let other = try configuration(
            #""template": { "file": "x" }, "recordedVersion": { "source": "userVersion" }"#)
        guard case .userVersion = other.recordedVersion else {
            Issue.record("the configured source is ignored")
            return
        }
    }

    @Test(
        "Mistakes in a schema source are reported with their place",
        arguments: [
            (#""template": { "file": "" }"#, "template.file is empty"),
            (#""template": { "file": 3 }"#, "template.file must be text"),
            (#""template": { "file": "x", "temporary": "a/b" }"#, "template.temporary must be a file name"),
            (
                #""template": { "file": "x", "temporary": "local.db" }"#,
                "template.temporary must not be the database itself"
            ),
            (#""template": { "file": "x", "tables": [] }"#, "template: unknown key \"tables\""),
            (#""template": { "file": "x", "renamedTables": { "a": 1 } }"#, "template.renamedTables.a must be text"),
            (
                #""template": { "file": "x", "renamedTables": { "a": "b", "b": "a" } }"#,
                "template.renamedTables.a: the renames of \"a\" form a cycle"
            ),
            (
                #""dbTables": [{"a": [{"x": ""}]}, {"b": [{"x": ""}]}], "tableOptions": {"a": {"renamedFrom": "b"}, "b": {"renamedFrom": "a"}}"#,
                "tableOptions.a.renamedFrom: the renames of \"a\" form a cycle"
            ),
            (
                #""dbTables": [{"a": [{"x": ""}, {"y": ""}]}], "tableOptions": {"a": {"renamedColumns": {"x": "z", "y": "Z"}}}"#,
                "tableOptions.a.renamedColumns.y: Z is renamed twice, to x and to y"
            ),
            (
                #""dbTables": [{"a": [{"x": ""}]}], "tableOptions": {"a": {"renamedFrom": "A"}}"#,
                "tableOptions.a.renamedFrom: A is renamed to itself"
            ),
            (#""template": { "file": "x" }, "tableVersions": {}"#, "tableVersions: a configuration can have only one"),
            (#""tableVersions": {}"#, "tableVersions lists no tables"),
            (
                #""tableVersions": { "t": { "version": 1 } }"#,
                "tableVersions.t: the key \"columns\" or \"sql\" is missing"
            ),
            (#""tableVersions": { "t": { "columns": [{ "a": "" }] } }"#, "tableVersions.t: the key \"version\" is m"),
            (
                #""tableVersions": { "t": { "version": 1, "sql": "", "columns": [] } }"#,
                "tableVersions.t.columns is not allowed"
            ),
            (
                #""tableVersions": { "t": { "version": 1, "sql": "", "index": [] } }"#,
                "tableVersions.t: unknown key \"index\""
            ),
            (
                #""tableVersions": { "t": { "version": 1, "sql": "", "indexes": "" } }"#,
                "tableVersions.t.indexes must be a list"
            ),
            (
                #""tableVersions": { "tableVersion": { "version": 1, "sql": "" } }"#,
                "tableVersions.tableVersion: this table stores the versions"
            ),
            (
                #""tableVersions": { "sqlite_x": { "version": 1, "sql": "" } }"#,
                "tableVersions: the table's name \"sqlite_x\" be"
            ),
            (
                #""tableVersions": { "t": { "version": 1, "sql": "" }, "T": { "version": 1, "sql": "" } }"#,
                "declared twice"
            ),
        ])
    func mistakes(source: String, expected: String) throws {
        let detail = try detail(source)
        #expect(detail?.contains(expected) == true, "\(detail ?? "no error")")
    }

    // MARK: tableVersions

    @Test(
        "A table's version is a number or its text",
        arguments: [("1.4", 1.4), ("\"1.4\"", 1.4), ("2", 2), ("\"1.10\"", 1.1), ("0", 0), ("\"2.0\"", 2)])
    func versions(text: String, expected: Double) throws {
        let configuration = try configuration(
            #""tableVersions": { "t": { "version": \#(text), "sql": "CREATE TABLE t(a)" } }"#)
        guard case .tableVersions(let tables) = configuration.schema else {
            Issue.record("the schema source does not have table versions")
            return
        }
        #expect(tables == [VersionedTable(name: "t", version: expected, definition: .sql("CREATE TABLE t(a)"))])
    }

    @Test(
        "A table's version that is negative or not a number is refused",
        arguments: [
            "\"1.4.2\"", "-1", "\"-1\"", "\"\"", "\".\"", "true", "null", "\"1e3\"", "\"inf\"", "1e30", "\" 1\"",
        ])
    func badVersions(text: String) throws {
        let detail = try detail(#""tableVersions": { "t": { "version": \#(text), "sql": "CREATE TABLE t(a)" } }"#)
        #expect(detail?.hasPrefix("tableVersions.t.version must be a non-negative number") == true, "\(detail ?? "")")
    }

    @Test(
        "A statement that does not create the table is refused",
        arguments: [
            "CREATE TABLE u(a)", "CREATE VIEW t AS SELECT 1", "SELECT 1", "nonsense",
            "CREATE TABLE t(a); CREATE TABLE u(b)",
        ])
    func otherStatements(sql: String) throws {
        var fixture = try PriorFixture("TableVersions/MessageStore.json")
        fixture.configuration.schema = .tableVersions([.init(name: "t", version: 1, definition: .sql(sql))])
        let error = try storeError { try fixture.open() }
        #expect([.migration, .configuration].contains(error?.code))
        #expect(
            error?.detail.contains("tableVersions.t") == true, "\(error.map(String.init(describing:)) ?? "no error")")
        #expect(try fixture.folder.names == [])
    }
}
