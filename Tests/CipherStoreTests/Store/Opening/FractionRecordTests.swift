internal import CipherErrors
internal import CipherHistory
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A version such as 1.10 in a column that stores it as the number 1.1.
struct FractionRecordTests {
    /// The app of versions from 1.0.0 to 1.10.0, whose record is in a numeric column.
    private func fixture(_ type: String, _ record: String) throws -> PriorFixture {
        let fixture = try PriorFixture("AppVersions/AppVersions.json")
        try fixture.write { connection in
            try LegacyStepsApp.appVersions.write(
                appVersion: "1.10.0", updates: ["1.2.0", "1.9.2", "1.10.0"], to: connection)
            try connection.executeScript(
                text: """
                    INSERT INTO contact (id, name) VALUES (3, 'Ana');
                    ALTER TABLE tb_clientstage RENAME TO old;
                    CREATE TABLE tb_clientstage (id TEXT, tableno TEXT, version \(type));
                    INSERT INTO tb_clientstage SELECT id, tableno, \(record) FROM old; DROP TABLE old;
                    """)
        }
        return fixture
    }

    @Test(
        "A version that a column stores as a number stops every launch before a step runs",
        arguments: ["REAL", "NUMERIC", "DECIMAL(4,2)"])
    func refuses(type: String) throws {
        let fixture = try fixture(type, "'1.10'")
        let before = try fixture.digest()
        for error in try [storeError { try fixture.open() }, storeError { try fixture.plan() }] {
            let error = try #require(error)
            #expect(error.code == .recordedVersion)
            #expect(error.detail.contains("\"version\" of the table \"tb_clientstage\""))
            #expect(error.advice.contains("recordedVersion.assume"))
        }
        #expect(try fixture.digest() == before)
    }

    @Test(
        "The assumed version applies, and no number is written that would be misread",
        arguments: ["REAL", "NUMERIC"])
    func assumes(type: String) throws {
        var fixture = try fixture(type, "'1.10'")
        fixture.configuration.assumedVersion = SchemaVersion("1.10.0")
        let report = try fixture.open()
        #expect(report.migration.from == SchemaVersion("1.10.0"))
        #expect(try fixture.values("SELECT id || name FROM contact") == ["3Ana"])
        #expect(try fixture.values("SELECT version FROM tb_clientstage WHERE tableno = '0'") == ["1.1"])
        #expect(try fixture.open().migration.from == SchemaVersion("1.10.0"))
    }

    @Test("A version that the app's column would store as a different number is not written there")
    func doesNotWrite() throws {
        for (wanted, kept) in [("1.10", "1.0"), ("1.10.0", "1.10.0"), ("2", "2.0")] {
            let fixture = try MigrationFixture(
                .init(isEncrypted: false, journalMode: "DELETE"),
                "CREATE TABLE t(a); CREATE TABLE v(n REAL); INSERT INTO v VALUES (1)")
            let configuration = Configuration(
                databaseName: "app.db", version: try #require(SchemaVersion(wanted)),
                recordedVersion: .table(.init(table: "v", column: "n")))
            for _ in 0..<2 { try fixture.launch(configuration, recorded: 1) }
            let found = try fixture.with { try $0.value(String.self, "SELECT CAST(n AS TEXT) FROM v") }
            #expect(found == kept)
        }
    }

    @Test("An app without dotted versions continues to read the number that it stored")
    func asWritten() throws {
        let fixture = try MigrationFixture(
            .init(isEncrypted: false, journalMode: "DELETE"),
            "CREATE TABLE t(a); CREATE TABLE v(n DOUBLE); INSERT INTO v VALUES (1.4)")
        let configuration = Configuration(
            databaseName: "app.db", version: 2, encryption: .init(isEnabled: false),
            recordedVersion: .table(.init(table: "v", column: "n")))
        let opening = try StoreOpening(
            configuration: configuration, directory: fixture.folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
        #expect(try opening.run().report.migration.from == SchemaVersion("1.4"))
    }

    @Test("A template with such a record is refused by name, whatever is assumed for users' databases")
    func template() throws {
        var fixture = try PriorFixture("Template/NoteStore.json")
        let template = try LegacyFile(named: "shipped.db") {
            try $0.executeScript(
                """
                CREATE TABLE note(id INTEGER PRIMARY KEY); CREATE TABLE Records(name TEXT, value NUMERIC);
                INSERT INTO Records VALUES ('DBVersion', '1.10')
                """)
        }
        fixture.configuration.version = try #require(SchemaVersion("1.10"))
        fixture.configuration.assumedVersion = SchemaVersion("1.10")
        fixture.configuration.schema = .template(.init(file: template.path))
        let error = try #require(try storeError { try fixture.open() })
        #expect(error.code == .recordedVersion)
        #expect(error.path == template.path)
        #expect(error.detail.contains("\"value\" of the table \"Records\""))
    }
}
