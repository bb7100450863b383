internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The history of an app that changes its schema in steps.
struct StepHistoryTests {
    private static let files = [
        "sql_default.plist": #"["CREATE TABLE user_info(id INTEGER PRIMARY KEY)"]"#,
        "sql_update_2.plist": #"["ALTER TABLE user_info ADD COLUMN age INTEGER"]"#,
        "sql_update_3.plist": #"["CREATE TABLE app_data(k TEXT, v TEXT)"]"#,
    ]

    private let fixture: StepsFixture

    init() throws {
        fixture = try StepsFixture(Self.files)
    }

    private func opening(
        _ changes: [String: String] = [:], version: String = "3"
    ) throws -> StoreOpening {
        let files = Self.files.merging(changes) { $1 }
        return try StoreOpening(
            configuration: StepsFixture.configuration(files, in: fixture.folder, version: version),
            directory: fixture.folder.url.path(percentEncoded: false), provider: TestKeys.provider())
    }

    private func steps(_ opening: StoreOpening) throws -> [String] {
        try opening.history().items.filter { $0.kind == .step }.map {
            "\($0.state.rawValue) \($0.name)"
        }
    }

    @Test("A fresh install has every step applied, and a step that is added later is pending")
    func pending() throws {
        #expect(try fixture.open().outcome == .created)
        #expect(try steps(opening()) == ["applied sql_update_2.plist", "applied sql_update_3.plist"])
        let added = try opening(["sql_update_4.plist": #"["SELECT 1"]"#], version: "4")
        #expect(
            try steps(added) == [
                "applied sql_update_2.plist", "applied sql_update_3.plist", "pending sql_update_4.plist",
            ])
        #expect(try added.validate().isValid)
    }

    @Test("A step that was changed after it was applied is reported, but not if only its formatting changed")
    func changedStep() throws {
        _ = try fixture.open()
        let formatted = try opening(["sql_update_2.plist": #"["alter table USER_INFO add column age  integer -- x"]"#])
        #expect(try formatted.validate().isValid)
        let changed = try opening(["sql_update_2.plist": #"["ALTER TABLE user_info ADD COLUMN age TEXT"]"#])
        #expect(
            try changed.validate().sentences == [
                "step 2 (sql_update_2.plist) was changed after it was applied"
            ])
        #expect(try changed.repair().event == .repaired)
        #expect(try changed.validate().isValid)
    }

    @Test("Steps of a newer release are future, and steps that were added too late are missing")
    func futureAndMissing() throws {
        _ = try fixture.open()
        var older = Self.files
        older["sql_update_3.plist"] = nil
        let configuration = try StepsFixture.configuration(
            older, in: TemporaryFolder(), version: "2")
        let opening = try StoreOpening(
            configuration: configuration, directory: fixture.folder.url.path(percentEncoded: false),
            provider: TestKeys.provider())
        #expect(try steps(opening) == ["applied sql_update_2.plist", "future sql_update_3.plist"])
        #expect(
            try opening.validate().sentences == [
                "the database has version 3, but the configuration supports versions up to 2",
                "step 3 (sql_update_3.plist) was applied, but is no longer in the configuration",
            ])
    }

    @Test("A step added after its version was reached is missing, and validating reports it")
    func lateStep() throws {
        _ = try fixture.open()
        let connection = try Connection(
            path: fixture.path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        let record = try #require(try SchemaRecord.latest(connection)?.record)
        let without = SchemaRecord(schema: record.schema, steps: record.steps.filter { $0.version != 2 })
        try connection.execute("UPDATE cipherstore_history SET schema = \(without.json())")
        connection.close()
        #expect(try steps(opening()) == ["missing sql_update_2.plist", "applied sql_update_3.plist"])
        #expect(
            try opening().validate().sentences == [
                "step 2 (sql_update_2.plist) was added after this database had already reached version 3, so it was "
                    + "never applied"
            ])
    }
}
