internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Files whose first 32 bytes stay readable, as iOS requires in an app group's folder.
@Suite(.enabled(if: Engine.current.defaultCompatibility >= 4))
struct ReadableHeaderTests {
    private let fixture: StoreFixture
    private let salted = TestKeys.provider { try TestKeys.rawWithSalt() }

    init() throws {
        fixture = StoreFixture(try TemporaryFolder())
    }

    private static let formats = [
        CipherSettings(plaintextHeaderSize: 32),
        CipherSettings(pageSize: 8192, kdfIterations: 1_000, hmacAlgorithm: .sha1, plaintextHeaderSize: 32),
        CipherSettings(pageSize: 1024, hmacAlgorithm: .sha256, plaintextHeaderSize: 32),
    ]

    private var url: URL { URL(filePath: fixture.path) }

    private var startsReadable: Bool {
        get throws { try Data(contentsOf: url).starts(with: Data("SQLite format 3\u{0}".utf8)) }
    }

    /// The configuration of a later version of the app, with one more column.
    private func later(_ configuration: Configuration) -> Configuration {
        var later = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT", "draft": "TEXT"]], version: 26)
        later.encryption = configuration.encryption
        return later
    }

    private func open(_ configuration: Configuration) async throws -> EncryptedStore {
        try await EncryptedStore.open(configuration, directory: fixture.folder.url, keyProvider: salted)
    }

    @Test(
        "A legacy file is encrypted, opened, migrated, inspected and verified with a readable header",
        arguments: formats)
    func wholeWay(format: CipherSettings) async throws {
        try fixture.writeLegacy(journalMode: "WAL")
        var configuration = fixture.configuration
        configuration.encryption.format = format
        let plan = try await EncryptedStore.plan(configuration, directory: fixture.folder.url, keyProvider: salted)
        #expect(plan.step == .encrypt)
        for configuration in [configuration, configuration, later(configuration)] {
            let store = try await open(configuration)
            try await store.insert("new")
            #expect(try await store.bodies().first == "old")
            #expect(try await store.checkpoint())
            await store.close()
            #expect(try startsReadable)
            #expect(try Data(contentsOf: url).range(of: Data("CREATE TABLE".utf8)) == nil)
        }
        let found = try await DatabaseConverter.inspect(url, keyProvider: salted, formats: [format])
        #expect(found.state == .encrypted)
        #expect(found.version == 26)
        let verified = try await DatabaseConverter.verify(url, keyProvider: salted, formats: [format])
        #expect(verified.isSound)
        #expect(verified.authentication == .everyPageInUseExceptHeader)
        #expect(
            try await EncryptedStore.validate(
                later(configuration), directory: fixture.folder.url, keyProvider: salted
            ).isValid)
    }

    @Test(
        "A readable header is added and removed by the configuration's format, and by a change of the format",
        arguments: formats)
    func comesAndGoes(format: CipherSettings) async throws {
        try fixture.writeLegacy()
        var configuration = fixture.configuration
        var closed = format
        closed.plaintextHeaderSize = 0
        configuration.encryption.format = closed
        configuration.encryption.whenFormerFormat = .upgrade
        try await open(configuration).close()
        #expect(try !startsReadable)
        configuration.encryption.format = format
        let opened = try await open(configuration)
        #expect(opened.report.outcome == .rekeyed)
        #expect(try await opened.bodies() == ["old"])
        await opened.close()
        #expect(try startsReadable)
        var options = ConversionOptions()
        for wanted in [closed, format] {
            options.format = wanted
            let report = try await DatabaseConverter.changeKey(
                of: url, from: salted, to: nil, formats: [closed, format], options: options)
            #expect(report.outcome == .rekeyed)
            #expect(try startsReadable == (wanted == format))
        }
        let back = try await DatabaseConverter.decrypt(url, keyProvider: salted, formats: [format])
        #expect(back.outcome == .decrypted)
        #expect(try fixture.connection(isEncrypted: false).values(String.self, "SELECT body FROM chat") == ["old"])
    }

    @Test("Without a salt in the key no file with a readable header is created or opened, and nothing changes")
    func saltMissing() async throws {
        try fixture.writeLegacy()
        var configuration = fixture.configuration
        configuration.encryption.format = CipherSettings(plaintextHeaderSize: 32)
        for (isEncrypted, key) in [(false, try TestKeys.raw()), (true, try CipherKey.passphrase("secret"))] {
            if isEncrypted { try await open(configuration).close() }
            let before = try FolderDigest(fixture.folder.url)
            let provider = TestKeys.provider { key }
            let error = try await failure(StoreError.self) {
                try await EncryptedStore.open(configuration, directory: fixture.folder.url, keyProvider: provider)
            }
            #expect(error.code == .saltMissing, "\(error)")
            #expect(error.advice.contains("salt"))
            #expect(try FolderDigest(fixture.folder.url) == before)
        }
    }
}

/// Engines that write at most format 3 do not support readable headers.
@Suite(.enabled(if: Engine.current.defaultCompatibility < 4))
struct NoReadableHeaderTests {
    @Test("If the engine does not support readable headers, the configuration is refused and the file unchanged")
    func refused() async throws {
        var fixture = StoreFixture(try TemporaryFolder())
        try fixture.writeLegacy()
        fixture.configuration.encryption.format = CipherSettings(plaintextHeaderSize: 32)
        let before = try FolderDigest(fixture.folder.url)
        let error = try await failure(StoreError.self) {
            try await fixture.open(TestKeys.provider { try TestKeys.rawWithSalt() })
        }
        #expect(error.code == .configuration)
        #expect(try FolderDigest(fixture.folder.url) == before)
    }
}
