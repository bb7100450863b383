internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct DottedVersionTests {
    private static let script = "CREATE TABLE chat(id INTEGER PRIMARY KEY); PRAGMA user_version = 7"

    private func configuration(_ version: String) throws -> Configuration {
        .declaring(["chat": ["id": "INTEGER PRIMARY KEY"]], version: try #require(SchemaVersion(version)))
    }

    @Test(
        "A version of several numbers is recorded in the history as text, and leaves user_version unchanged",
        arguments: MigrationFixture.Form.all)
    func records(form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.script)
        let older = try configuration("1.9.2")
        let newer = try configuration("1.10.0")
        #expect(try fixture.launch(older, recorded: SchemaVersion("1.9.1")).isUpdate)
        let report = try fixture.launch(newer, recorded: SchemaVersion("1.9.1"))
        #expect(report.from == SchemaVersion("1.9.2"))
        #expect(report.to == SchemaVersion("1.10.0"))
        #expect(report.applied.map(\.kind) == [.stamp])
        #expect(try fixture.launch(newer, recorded: SchemaVersion("1.9.1")).event == nil)
        try fixture.with(.readOnly) { (connection) throws in
            #expect(try connection.value(Int.self, "PRAGMA user_version") == 7)
            // A numeric column would contain 1.1.
            #expect(try HistoryTable.latestEvents(connection).map(\.toVersion) == ["1.10.0", "1.9.2"])
        }
        let downgrade = try storeError { try fixture.launch(older) }
        #expect(downgrade?.code == .downgrade)
    }

    @Test("A version of several numbers can follow a whole number, and the reverse")
    func changesKind() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.script)
        let reports = try ["3", "3.1", "4", "4"].map { try fixture.launch(configuration($0), recorded: 2) }
        #expect(reports.map(\.from) == [2, 3, SchemaVersion("3.1"), 4])
        #expect(reports.map(\.event) == [.adopted, .migrated, .migrated, nil])
        #expect(try fixture.with { try $0.value(Int.self, "PRAGMA user_version") } == 4)
    }

    @Test("A version of several numbers that is damaged in the history is named, and nothing is changed")
    func refusesDamage() throws {
        let fixture = try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), Self.script)
        let configuration = try configuration("1.2")
        try fixture.launch(configuration)
        try fixture.with { try $0.execute("UPDATE cipherstore_history SET toVersion = 'soon'") }
        let before = try fixture.bytes()
        let error = try storeError { try fixture.launch(configuration) }
        #expect(error?.code == .recordedVersion)
        #expect(try fixture.bytes() == before)
    }

    @Test("A version of several numbers is encoded as the text that it was created from")
    func encodes() throws {
        let versions = try ["26", "1.10.0", "0"].map { try #require(SchemaVersion($0)) }
        let data = try JSONEncoder().encode(versions)
        #expect(String(decoding: data, as: UTF8.self) == #"["26","1.10.0","0"]"#)
        #expect(try JSONDecoder().decode([SchemaVersion].self, from: data) == versions)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([SchemaVersion].self, from: Data(#"["x"]"#.utf8))
        }
    }
}
