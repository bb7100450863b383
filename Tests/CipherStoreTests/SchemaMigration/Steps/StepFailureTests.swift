internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct StepFailureTests {
    private static let statements = [
        "ALTER TABLE user_info ADD COLUMN age INTEGER", "UPDATE user_info SET age = 7",
        "CREATE TABLE app_data (key TEXT)", "INSERT INTO app_data VALUES ('a')", "DELETE FROM user_info WHERE id = 9",
        "DROP TABLE old",
    ]
    private static let legacy = """
        CREATE TABLE user_info (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE old (x);
        INSERT INTO user_info VALUES (3, 'Ana'), (9, 'Bo'); INSERT INTO old VALUES (1);
        """
    private static let failing = "INSERT INTO user_info (id, name) VALUES (3, 'again')"

    private func configuration(_ statements: [String]) -> Configuration {
        var configuration = Configuration(
            databaseName: "app.db", version: 2, encryption: .init(sinceVersion: 2),
            schema: .steps(
                MigrationSteps(
                    baseline: .sql([
                        "CREATE TABLE user_info (id INTEGER PRIMARY KEY, name TEXT)", "CREATE TABLE old (x)",
                    ]),
                    updates: [.init(2, .sql(statements))])))
        configuration.destructiveSteps = ["update 2"]
        return configuration
    }

    @Test(
        "A step that fails only because of the rows leaves the database unchanged, wherever it fails", arguments: 0...6,
        MigrationFixture.Form.all)
    func rollsBack(position: Int, form: MigrationFixture.Form) throws {
        let fixture = try MigrationFixture(form, Self.legacy)
        var statements = Self.statements
        statements.insert(Self.failing, at: position)
        let before = try fixture.with { try DatabaseDump($0) }
        let error = try storeError { try fixture.launch(configuration(statements), recorded: 1) }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("update 2[\(position)]") == true)
        let after = try fixture.with { try DatabaseDump($0) }
        // The row with the number 3 must still exist, because no earlier statement deletes it.
        #expect(after == before, "\(after.differences(from: before))")
    }

    @Test("A step that fails only because of the rows does not prevent the next launch, which has a corrected step")
    func correctedLater() throws {
        let file = try LegacyFile { try $0.executeScript(text: Self.legacy + "PRAGMA user_version = 1") }
        func open(_ statements: [String]) throws -> OpenReport {
            try StoreOpening(
                configuration: configuration(statements), directory: file.folder.url.path(percentEncoded: false),
                provider: TestKeys.provider()
            ).run().report
        }
        let failure = try storeError { try open([Self.failing]) }
        #expect(failure?.code == .migration)
        #expect(try open(Self.statements).launch == .upgrade(from: 1, to: 2))
        let rows = try file.read(key: TestKeys.raw()) {
            try $0.values(String.self, "SELECT id || name || age FROM user_info")
        }
        #expect(rows == ["3Ana7"])
    }
}
