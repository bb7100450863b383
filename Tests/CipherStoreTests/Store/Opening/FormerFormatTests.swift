internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Files in cipher formats of older versions, and formats that differ from SQLCipher's defaults.
struct FormerFormatTests {
    private typealias Fixture = OpeningFixture

    private static let key: @Sendable () throws -> CipherKey = { try TestKeys.passphrase() }
    private static let formats = CipherSettings.everyFormat

    /// The settings of an app, as far as the engine knows them.
    private static let odd =
        Engine.current.defaultCompatibility >= 4
        ? [
            CipherSettings(pageSize: 8192, kdfIterations: 1_000, hmacAlgorithm: .sha256, kdfAlgorithm: .sha1),
            CipherSettings(pageSize: 1024), CipherSettings(kdfIterations: 4_000), CipherSettings(hmacAlgorithm: .sha1),
            CipherSettings(kdfAlgorithm: .sha256), CipherSettings(compatibility: 3, pageSize: 65_536),
        ]
        : [CipherSettings(pageSize: 8192, kdfIterations: 1_000), CipherSettings(pageSize: 65_536)]

    private func open(_ file: LegacyFile, _ encryption: Configuration.Encryption) throws -> OpenReport {
        try Fixture.open(file.folder, Fixture.configuration(encryption), key: Self.key).report
    }

    @Test("A file in an older format is refused, opened as it is, or upgraded, as configured", arguments: formats + odd)
    func older(format: CipherSettings) throws {
        guard format != CipherSettings() else { return }
        let file = try Fixture.file(version: 26, encryptedWith: Self.key(), settings: format)
        let before = try file.digest()
        #expect(try storeError { try open(file, .init()) }?.code == .keyDoesNotFit)
        #expect(try file.digest() == before)

        var encryption = Configuration.Encryption(formerFormats: Self.formats + Self.odd)
        #expect(try open(file, encryption).outcome == .opened)
        #expect(try Fixture.rows(file, key: Self.key(), settings: format) == Fixture.allRows)

        encryption.whenFormerFormat = .upgrade
        let report = try open(file, encryption)
        #expect(report.outcome == .rekeyed)
        #expect(report.encryption?.rows ?? 0 >= 3)
        #expect(try Fixture.rows(file, key: Self.key()) == Fixture.allRows)
        #expect(try file.read(key: Self.key()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try open(file, encryption).outcome == .opened)
    }

    @Test("A custom format encrypts a legacy file, creates new files and opens them", arguments: odd)
    func own(format: CipherSettings) throws {
        let file = try Fixture.file(version: 23)
        let original = try file.originalDump()
        var options = ConversionOptions()
        options.format = format
        let upgrade = try EncryptionUpgrade(
            path: file.path, provider: TestKeys.provider(Self.key), options: options)
        #expect(try upgrade.run().outcome == .encrypted)
        #expect(try file.dump(key: Self.key(), settings: format) == original)
        #expect(try open(file, .init(sinceVersion: 24, format: format)).outcome == .opened)
        #expect(throws: DatabaseError.self) { try Fixture.rows(file, key: Self.key()) }

        let folder = try TemporaryFolder()
        let configuration = Fixture.configuration(.init(format: format))
        #expect(try Fixture.open(folder, configuration, key: Self.key).report.outcome == .created)
        #expect(try Fixture.open(folder, configuration, key: Self.key).report.outcome == .opened)
    }

    @Test("A file can be converted from the newest format to a custom one", arguments: odd)
    func toOwn(format: CipherSettings) throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.key())
        let encryption = Configuration.Encryption(
            format: format, formerFormats: [CipherSettings()], whenFormerFormat: .upgrade)
        #expect(try open(file, encryption).outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: Self.key(), settings: format) == Fixture.allRows)
    }

    @Test("The key and the format change in one step")
    func keyAndFormat() throws {
        guard let format = (Self.formats + Self.odd).last else { return }
        let file = try Fixture.file(version: 26, encryptedWith: Self.key(), settings: format)
        let encryption = Configuration.Encryption(formerFormats: [format], whenFormerFormat: .upgrade)
        let rotation = KeyRotation(from: TestKeys.provider(Self.key), to: TestKeys.provider())
        let report = try Fixture.open(file.folder, Fixture.configuration(encryption), provider: rotation).report
        #expect(report.outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A hot journal in an older format is rolled back after the key was found to fit")
    func hotJournal() throws {
        guard let format = (Self.formats + Self.odd).last else { return }
        let file = try LegacyFile(unclosed: true) { connection in
            try connection.setKey(Self.key(), settings: format)
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('kept'); PRAGMA user_version = 26;
                CREATE TABLE filler(a); INSERT INTO filler
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT zeroblob(900) FROM n;
                PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = 'lost'; UPDATE filler SET a = zeroblob(901);
                """)
        }
        try #require(file.folder.names.contains("app.db-journal"))
        let encryption = Configuration.Encryption(formerFormats: [format], whenFormerFormat: .upgrade)
        #expect(try open(file, encryption).outcome == .rekeyed)
        #expect(try file.read(key: Self.key()) { try $0.value(String.self, "SELECT a FROM t") } == "kept")
    }

    @Test(
        "An invalid format is refused before the file is examined",
        arguments: [
            CipherSettings(compatibility: 9), CipherSettings(pageSize: 1000), CipherSettings(pageSize: 512),
            CipherSettings(pageSize: 131_072), CipherSettings(kdfIterations: 0),
            CipherSettings(compatibility: 3, hmacAlgorithm: .sha512), CipherSettings(plaintextHeaderSize: 7),
        ])
    func impossible(format: CipherSettings) throws {
        let file = try Fixture.file(version: 23)
        let before = try file.digest()
        #expect(try storeError { try open(file, .init(sinceVersion: 24, format: format)) }?.code == .configuration)
        #expect(
            try storeError { try open(file, .init(sinceVersion: 24, formerFormats: [format])) }?.code == .configuration)
        #expect(try file.digest() == before)
    }
}
