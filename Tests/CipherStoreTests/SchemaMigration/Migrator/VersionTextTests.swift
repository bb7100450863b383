internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Versions in the form in which they were specified, and numeric versions.
struct VersionTextTests {
    @Test("A version keeps its original text", arguments: ["1.10.0", "2.0.0", "0.0", "01.2", "24"])
    func keepsText(text: String) throws {
        let version = try #require(SchemaVersion(text))
        #expect(version.description == text)
        let coded = try JSONEncoder().encode([version])
        #expect(String(decoding: coded, as: UTF8.self) == "[\"\(text)\"]")
        #expect(try JSONDecoder().decode([SchemaVersion].self, from: coded).first?.description == text)
    }

    @Test("Versions are compared as numbers, whatever their texts")
    func comparesNumbers() {
        #expect(SchemaVersion("2.0.0") == 2)
        #expect(SchemaVersion("1.10.0") == SchemaVersion("1.10"))
        #expect(Set([SchemaVersion("1.10.0"), SchemaVersion("1.10")]).count == 1)
        #expect(SchemaVersion(2).hashValue == SchemaVersion("2.0")?.hashValue)
    }

    @Test("The history, the report and the plan show the version as the configuration writes it")
    func recordsText() throws {
        let fixture = try PriorFixture("AppVersions/AppVersions.json")
        try fixture.write { try LegacyStepsApp.appVersions.write(appVersion: "1.0.0", updates: [], to: $0) }
        let plan = try fixture.plan().schema
        let json = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(plan)) as? [String: Any])
        #expect(json["from"] as? String == "1.0.0")
        #expect(json["to"] as? String == "1.10.0")
        try fixture.open()
        #expect(
            try fixture.values("SELECT toVersion FROM cipherstore_history WHERE toVersion IS NOT NULL") == ["1.10.0"])
    }

    @Test(
        "An integer that REAL cannot represent counts as changed, including the largest one",
        arguments: [Int64.max, Int64.max - 1, 9_007_199_254_740_993])
    func countsInexactIntegers(number: Int64) throws {
        let folder = try TemporaryFolder()
        try LegacyFile.write(
            folder.path("app.db"),
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, \(number)), (2, 5)")
        let configuration = Configuration(
            databaseName: "app.db", version: 1,
            schema: .tables([
                DeclaredTable(
                    name: "t",
                    columns: [
                        .init(name: "id", definition: "INTEGER PRIMARY KEY"), .init(name: "n", definition: "REAL"),
                    ])
            ]))
        let report = try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
        #expect(report.migration.withheld.map(\.rows) == [1])
    }
}
