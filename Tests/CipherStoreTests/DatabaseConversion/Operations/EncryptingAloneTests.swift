internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Only the encryption upgrade, for an app that opens the file with another wrapper.
@Suite struct EncryptingAloneTests {
    @Test("Encrypting alone leaves the schema, the version and the journal mode to the app")
    func leavesTheRestToTheApp() async throws {
        let file = try LegacyFile {
            try $0.executeScript(
                """
                PRAGMA journal_mode = WAL;
                CREATE TABLE grdb_migrations(identifier TEXT NOT NULL PRIMARY KEY);
                INSERT INTO grdb_migrations VALUES ('v1');
                PRAGMA user_version = 7;
                """)
        }
        let before = try file.originalDump()
        let report = try await DatabaseConverter.encrypt(URL(filePath: file.path), keyProvider: TestKeys.provider())
        #expect(report.outcome == .encrypted)
        #expect(try file.dump(key: TestKeys.raw()).differences(from: before).isEmpty)
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")

        let digest = try file.digest()
        let again = try await DatabaseConverter.encrypt(URL(filePath: file.path), keyProvider: TestKeys.provider())
        #expect(again.outcome == .alreadyEncrypted)
        #expect(try file.digest() == digest)
    }

    @Test("If there is no file, the wrapper finds an encrypted database without tables")
    func makesWhatIsMissing() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appending(path: "app.db")
        let report = try DatabaseConverter.encryptBlocking(url, keyProvider: TestKeys.provider())
        #expect(report.outcome == .created)
        #expect(try folder.names == ["app.db"])
        let connection = try Connection(
            path: folder.path("app.db"), mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        #expect(try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == 0)
        connection.close()
        #expect(throws: StoreError.self) {
            try DatabaseConverter.encryptBlocking(url, keyProvider: TestKeys.provider { try TestKeys.raw(9) })
        }
    }

    @Test("A file is encrypted in the format that the wrapper reads")
    func keepsTheFormatThatTheWrapperReads() async throws {
        let file = try LegacyFile { try $0.execute("CREATE TABLE note(body TEXT)") }
        try await DatabaseConverter.encrypt(
            URL(filePath: file.path), keyProvider: TestKeys.provider(), options: Self.options(3))
        let connection = try Connection(
            path: file.path, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings(compatibility: 3))
        defer { connection.close() }
        #expect(try connection.value(Int.self, "SELECT count(*) FROM note") == 0)
    }

    @Test("An unsupported format is refused, and the file stays unchanged", arguments: [2, 5])
    func refusesFormatThatNobodyWrites(_ format: Int) async throws {
        let file = try LegacyFile { try $0.execute("CREATE TABLE note(body TEXT)") }
        let digest = try file.digest()
        let error = await #expect(throws: StoreError.self) {
            try await DatabaseConverter.encrypt(
                URL(filePath: file.path), keyProvider: TestKeys.provider(), options: Self.options(format))
        }
        #expect(error?.code == .configuration)
        #expect(try file.digest() == digest)
    }

    private static func options(_ compatibility: Int) -> ConversionOptions {
        var options = ConversionOptions()
        options.format = CipherSettings(compatibility: compatibility)
        return options
    }
}
