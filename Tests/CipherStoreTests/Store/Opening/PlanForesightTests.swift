internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Results that do not depend on the file's content: a plan predicts what the opening does, and makes no key.
struct PlanForesightTests {
    private typealias Fixture = OpeningFixture

    /// A folder, the way to open it, and the result.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let verdict: Verdict
        var encryption = Configuration.Encryption(sinceVersion: 24, maximumAttempts: 3)
        var provider: any KeyProvider = TestKeys.provider()
        let folder: @Sendable () throws -> TemporaryFolder

        enum Verdict: Sendable {
            case refused(StoreError.Code)
            case done(StorePlan.Step, OpenReport.Outcome, noting: String)
        }

        init(
            _ description: String, _ verdict: Verdict, _ encryption: Configuration.Encryption? = nil,
            _ provider: any KeyProvider = TestKeys.provider(),
            in folder: @escaping @Sendable () throws -> TemporaryFolder
        ) {
            testDescription = description
            self.verdict = verdict
            if let encryption { self.encryption = encryption }
            self.provider = provider
            self.folder = folder
        }
    }

    private static let nothing: @Sendable () throws -> TemporaryFolder = { try TemporaryFolder() }
    private static let legacy: @Sendable () throws -> TemporaryFolder = { try Fixture.file(version: 23).folder }
    private static let encrypted: @Sendable () throws -> TemporaryFolder = {
        try Fixture.file(version: 26, encryptedWith: TestKeys.raw()).folder
    }

    /// Returns the folder after three killed runs.
    private static func killed(
        _ folder: @escaping @Sendable () throws -> TemporaryFolder
    ) -> @Sendable () throws -> TemporaryFolder {
        {
            let folder = try folder()
            _ = try KilledRun(folder, attempts: 3)
            return folder
        }
    }

    private static func failing(_ code: StoreError.Code) -> ClosureKeyProvider {
        TestKeys.provider { throw StoreError(code, "the store said so") }
    }

    private static func rotation(to new: any KeyProvider) -> KeyRotation {
        KeyRotation(from: TestKeys.provider(), to: new)
    }

    private static let unset = EnvironmentKeyProvider(variable: "KEY") { _ in nil }
    private static let readableHeader = Configuration.Encryption(
        sinceVersion: 24, format: CipherSettings(plaintextHeaderSize: 32))
    private static let opensPlaintext = Configuration.Encryption(
        sinceVersion: 24, maximumAttempts: 3, onRepeatedFailure: .openPlaintext)
    private static let turnedOff = Configuration.Encryption(
        isEnabled: false, whenDisabled: .decrypt, maximumAttempts: 3)

    static let cases: [Case] = (attempts + keys + rotations).filter {
        Engine.current.hasCompatibilityPragma || $0.encryption.format.plaintextHeaderSize == 0
    }

    private static let attempts: [Case] = [
        Case("an upgrade that was killed too often", .refused(.repeatedFailure), in: killed(legacy)),
        Case(
            "an upgrade that was killed too often, and the file opens as it is",
            .done(.openPlaintext, .openedPlaintext, noting: "was started 3 times"), opensPlaintext, in: killed(legacy)),
        Case(
            "a decryption that was killed too often",
            .done(.open, .opened, noting: "the decryption is postponed: "), turnedOff, in: killed(encrypted)),
        Case(
            "a change of key that was killed too often",
            .done(.open, .opened, noting: "the key or format change is postponed: "), nil,
            rotation(to: TestKeys.provider { try TestKeys.raw(8) }), in: killed(encrypted)),
        Case("another program's file in the place of the record", .refused(.nameTaken)) {
            let folder = try legacy()
            try folder.write("a stranger", to: "app.db-attempt")
            return folder
        },
    ]

    private static let keys: [Case] = [("a new database", nothing), ("a legacy file", legacy)].flatMap { name, folder in
        [
            Case("\(name), and no key in the environment", .refused(.keyUnavailable), nil, unset, in: folder),
            Case(
                "\(name), and a locked key store",
                .refused(.keyStoreLocked), nil, failing(.keyStoreLocked), in: folder),
            Case("\(name), and a key without the salt", .refused(.saltMissing), readableHeader, in: folder),
        ]
    }

    private static let rotations: [Case] =
        [.keyStoreLocked, .keyStoreUnavailable, .keyMalformed].map { code in
            Case(
                "a rotation whose new key cannot be had: \(code)", .done(.open, .opened, noting: "the store said so"),
                nil,
                rotation(to: failing(code)), in: encrypted)
        } + [
            Case(
                "a rotation whose new key is not in the environment", .done(.open, .opened, noting: "KEY is not set"),
                nil,
                rotation(to: unset), in: encrypted),
            Case(
                "a rotation to a format whose salt is missing", .refused(.saltMissing),
                Configuration.Encryption(
                    sinceVersion: 24, format: CipherSettings(plaintextHeaderSize: 32),
                    formerFormats: [CipherSettings()],
                    whenFormerFormat: .upgrade), in: encrypted),
        ]

    private func opening(_ found: Case, _ folder: TemporaryFolder) throws -> StoreOpening {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try StoreOpening(
            configuration: Fixture.configuration(found.encryption), directory: folder.path(""),
            provider: found.provider, options: options)
    }

    @Test("Planning refuses and postpones the same changes as opening, and changes nothing", arguments: cases)
    func agreement(found: Case) throws {
        let folder = try found.folder()
        let opening = try opening(found, folder)
        let before = try FolderDigest(folder.url)
        switch found.verdict {
        case .refused(let code):
            #expect(try storeError { try opening.plan(rehearsalLimit: 1 << 20) }?.code == code)
            #expect(try FolderDigest(folder.url) == before)
            #expect(try storeError { try opening.run() }?.code == code)
        case .done(let step, let outcome, let note):
            let plan = try opening.plan(rehearsalLimit: 1 << 20)
            #expect(plan.step == step)
            #expect(plan.schema.notes.count { $0.contains(note) } == 1, "\(plan.schema.notes)")
            #expect(try FolderDigest(folder.url) == before)
            let report = try opening.run().report
            #expect(report.outcome == outcome)
            #expect(report.warnings.count { $0.contains(note) } == 1, "\(report.warnings)")
        }
    }

    /// A provider that creates its key, as in apps.
    private static func making(_ folder: TemporaryFolder) -> [any KeyProvider] {
        [
            FileKeyProvider.file(folder.path("key"), createIfMissing: true),
            ClosureKeyProvider { purpose, _ in
                guard purpose == .createOrExisting || FileManager.default.fileExists(atPath: folder.path("key")) else {
                    throw CocoaError(.fileNoSuchFile)
                }
                try folder.write("a key", to: "key")
                return try TestKeys.raw(8)
            },
        ]
    }

    @Test("Planning reports that opening would create a key, and creates none itself", arguments: 0..<6)
    func makesNoKey(number: Int) throws {
        let keys = try TemporaryFolder()
        let made = Self.making(keys)[number % 2]
        let folder = try [Self.nothing, Self.legacy, Self.encrypted][number / 2]()
        let provider: any KeyProvider = number / 2 == 2 ? Self.rotation(to: made) : made
        let opening = try StoreOpening(
            configuration: Fixture.configuration(), directory: folder.path(""), provider: provider)
        let plan = try opening.plan()
        #expect(plan.step == [.create, .encrypt, .rekey][number / 2])
        #expect(plan.schema.notes.count { $0.hasPrefix("there is no key yet") } == 1, "\(plan.schema.notes)")
        #expect(try keys.names.isEmpty)
        #expect(try opening.run().report.outcome == [.created, .encrypted, .rekeyed][number / 2])
        #expect(try opening.plan().schema.notes.isEmpty)
    }
}
