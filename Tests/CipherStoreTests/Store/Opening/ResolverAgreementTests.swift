internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Opening, planning, validating, reading the history and repairing must find the same state in a file.
struct ResolverAgreementTests {
    private static let keys = Result { try TemporaryFolder() }
    private static let old: @Sendable () throws -> CipherKey = { try TestKeys.raw() }
    private static let new: @Sendable () throws -> CipherKey = { try TestKeys.passphrase() }
    /// A key and a format that a file may have, and a provider that opens the file with them.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var key: @Sendable () throws -> CipherKey = ResolverAgreementTests.old
        var settings = CipherSettings()
        let provider: any KeyProvider
        var step = StorePlan.Step.rekey

        static var all: [Case] {
            guard let keys = try? keys.get() else { return [] }
            let rotation = KeyRotation(
                from: .closure { _, _ in try old() }, to: .closure { _, _ in try new() })
            let beforeTheKeyIsMade = KeyRotation(
                from: .closure { _, _ in try old() },
                to: .file(keys.path("key"), createIfMissing: true))
            let former = CipherSettings(compatibility: 3)
            var cases = [
                Case(testDescription: "the previous key", provider: rotation),
                Case(testDescription: "the previous key, and no new one yet", provider: beforeTheKeyIsMade),
                Case(testDescription: "the new key", key: new, provider: rotation, step: .open),
            ]
            guard Engine.current.hasCompatibilityPragma else { return cases }
            cases += [
                Case(
                    testDescription: "a former format", settings: former, provider: TestKeys.provider(), step: .open),
                Case(testDescription: "the previous key in a former format", settings: former, provider: rotation),
                Case(
                    testDescription: "the previous key, which brings the salt", key: TestKeys.rawWithSalt,
                    settings: CipherSettings(plaintextHeaderSize: 32),
                    provider: KeyRotation(
                        from: .closure { _, _ in try TestKeys.rawWithSalt() }, to: .closure { _, _ in try new() })),
            ]
            return cases
        }
    }

    private func configuration(isEnabled: Bool = true, version: SchemaVersion = 25) -> Configuration {
        var configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]], version: version)
        configuration.encryption.isEnabled = isEnabled
        configuration.encryption.formerFormats = CipherSettings.everyFormat
        return configuration
    }

    private func opening(
        _ folder: TemporaryFolder, _ configuration: Configuration, _ provider: any KeyProvider = TestKeys.provider()
    ) throws -> StoreOpening {
        try StoreOpening(configuration: configuration, directory: folder.path(""), provider: provider)
    }

    /// A database that CipherStore made, in the format and under the key of the case.
    private func made(_ found: Case) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        var configuration = configuration()
        configuration.encryption.format = found.settings
        if found.settings.plaintextHeaderSize > 0 {
            configuration.encryption.format = CipherSettings()
            _ = try opening(folder, configuration, TestKeys.provider(Self.old)).run()
            _ = try Rekeying(
                at: DatabasePaths(folder.path("app.db")), oldKey: TestKeys.provider(Self.old),
                newKey: TestKeys.provider(found.key),
                formats: [CipherSettings()], newSettings: found.settings, options: ConversionOptions()
            ).run()
        } else {
            _ = try opening(folder, configuration, TestKeys.provider(found.key)).run()
        }
        return folder
    }

    @Test(
        "Planning, validating, reading the history and repairing try the same keys and formats as opening",
        arguments: Case.all)
    func everyKeyAndFormat(found: Case) throws {
        let folder = try made(found)
        let opening = try opening(folder, configuration(), found.provider)
        let before = try FolderDigest(folder.url)
        #expect(try opening.plan().step == found.step)
        #expect(try opening.validate().isValid)
        #expect(try opening.history().version == 25)
        #expect(try opening.repair().event == nil)
        #expect(try FolderDigest(folder.url) == before)
        #expect(try opening.run().report.outcome == (found.step == .rekey ? .rekeyed : .opened))
    }

    @Test("Neither a repair nor a baseline writes to a file that opening refuses")
    func refusals() throws {
        let folder = try TemporaryFolder()
        let configuration = configuration(isEnabled: false)
        _ = try opening(folder, configuration).run()
        let file = try FileHandle(forUpdating: folder.url.appending(path: "app.db"))
        try file.truncate(atOffset: try file.seekToEnd() - 4096)
        try file.close()
        let before = try FolderDigest(folder.url)
        let opening = try opening(folder, configuration)
        #expect(try storeError { try opening.run() }?.code == .corrupt)
        #expect(try storeError { try opening.repair() }?.code == .corrupt)
        #expect(try storeError { try opening.baseline() }?.code == .corrupt)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A baseline is refused for a database that its record shows to be newer than the app")
    func newerThanTheApp() throws {
        let folder = try TemporaryFolder()
        try LegacyFile.write(
            folder.path("app.db"), script: "CREATE TABLE chat(uid TEXT, body TEXT); PRAGMA user_version = 30")
        let before = try FolderDigest(folder.url)
        let opening = try opening(folder, configuration(isEnabled: false))
        #expect(try storeError { try opening.run() }?.code == .downgrade)
        #expect(try storeError { try opening.baseline() }?.code == .downgrade)
        #expect(try FolderDigest(folder.url) == before)
    }
}
