internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The forms of a key, and providers with errors.
struct KeyFormTests {
    private typealias Fixture = OpeningFixture

    /// Counts the requests to a provider.
    private final class Tally: @unchecked Sendable {
        // Read and written only under `lock`.
        private var purposes: [KeyPurpose] = []
        private let lock = NSLock()
        func note(_ purpose: KeyPurpose) -> Int {
            lock.withLock {
                purposes.append(purpose)
                return purposes.count
            }
        }
        var all: [KeyPurpose] { lock.withLock { purposes } }
    }

    enum Form: String, CaseIterable, Sendable {
        case passphrase, raw, rawWithSalt
        func key() throws -> CipherKey {
            switch self {
            case .passphrase: try TestKeys.passphrase()
            case .raw: try TestKeys.raw()
            case .rawWithSalt: try TestKeys.rawWithSalt()
            }
        }
    }

    private func upgrade(
        _ file: LegacyFile, _ settings: CipherSettings = CipherSettings(), _ provider: some KeyProvider
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.format = settings
        return try EncryptionUpgrade(path: file.path, provider: provider, options: options).run()
    }

    @Test(
        "Every form of a key encrypts and opens a file and is recognized again, in every format",
        arguments: Form.allCases,
        [3, 4])
    func forms(form: Form, format: Int) throws {
        guard format <= Engine.current.defaultCompatibility else { return }
        let settings = CipherSettings(compatibility: format)
        let file = try Fixture.file(version: 23)
        let original = try file.originalDump()
        #expect(try upgrade(file, settings, TestKeys.provider(form.key)).outcome == .encrypted)
        #expect(try file.dump(key: form.key(), settings: settings) == original)
        #expect(try upgrade(file, settings, TestKeys.provider(form.key)).outcome == .alreadyEncrypted)
        if form == .rawWithSalt {
            let salt = try Data(contentsOf: URL(filePath: file.path)).prefix(16)
            #expect(Array(salt) == Array(1...16))
        }
    }

    @Test(
        "A readable header of 32 bytes is kept, with a key that contains its salt",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func plaintextHeader() throws {
        let settings = CipherSettings(plaintextHeaderSize: 32)
        let file = try Fixture.file(version: 23)
        let original = try file.originalDump()
        #expect(try storeError { try upgrade(file, settings, TestKeys.provider()) }?.code == .saltMissing)
        #expect(try upgrade(file, settings, TestKeys.provider(TestKeys.rawWithSalt)).outcome == .encrypted)
        #expect(try file.startsAsPlaintext)
        #expect(try Data(contentsOf: URL(filePath: file.path)).range(of: Data("second".utf8)) == nil)
        #expect(try file.dump(key: TestKeys.rawWithSalt(), settings: settings) == original)
        #expect(try upgrade(file, settings, TestKeys.provider(TestKeys.rawWithSalt)).outcome == .alreadyEncrypted)
        let error = try storeError { try upgrade(file, settings, TestKeys.provider()) }
        #expect(error?.code == .saltMissing)
    }

    @Test(
        "A file with a readable header is found in the format that it has",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func formatsOfPlaintextHeader() throws {
        let file = try Fixture.file(version: 23)
        let settings = CipherSettings(plaintextHeaderSize: 32)
        #expect(try upgrade(file, settings, TestKeys.provider(TestKeys.rawWithSalt)).outcome == .encrypted)
        let others = [
            CipherSettings(pageSize: 8192, plaintextHeaderSize: 32), CipherSettings(compatibility: 3),
            CipherSettings(pageSize: 1024),
        ]
        for formats in [others + [settings], [settings] + others] {
            let inspection = try Inspector(path: file.path)
                .inspect(provider: TestKeys.provider(TestKeys.rawWithSalt), formats: formats)
            #expect(inspection.version == 23)
        }
        let error = try storeError {
            try Inspector(path: file.path).inspect(provider: TestKeys.provider(TestKeys.rawWithSalt), formats: others)
        }
        #expect(error?.code == .keyDoesNotFit)
    }

    @Test("Under a key with its salt, a change to the file's own salt is not noticed, and the key alone does not fit")
    func changedSalt() throws {
        let file = try Fixture.file(version: 23)
        let original = try file.originalDump()
        let provider = TestKeys.provider(TestKeys.rawWithSalt)
        #expect(try upgrade(file, CipherSettings(), provider).outcome == .encrypted)
        let alone = try TestKeys.raw(9)
        #expect(try file.dump(key: alone) == original)
        var bytes = try Data(contentsOf: URL(filePath: file.path))
        for index in 0..<16 { bytes[index] ^= 0xff }
        try bytes.write(to: URL(filePath: file.path))

        #expect(try file.dump(key: TestKeys.rawWithSalt()) == original)
        let found = try Verification.run(
            at: DatabasePaths(file.path), provider: provider, formats: [CipherSettings()])
        #expect(found.complaints == [] && found.warnings == [])
        #expect(found.authentication == (Engine.current.cipherMajor >= 4 ? .everyPage : .everyPageInUse))
        #expect(throws: DatabaseError.self) { try file.dump(key: alone) }
    }

    /// What was seen of the copy.
    private struct Sight: Sendable {
        /// Every mode that it had.
        var modes: Set<Int?> = []
        /// Its latest content while it was built, and its content before it was proven.
        var contents: [UpgradeStage: Data] = [:]
    }

    @Test(
        "While a copy is built and proven, only its owner may read it, and it has no text of a row or of the schema",
        arguments: CipherSettings.authenticated().filter(\.canBeWritten) + [CipherSettings(pageSize: 2048)])
    func copyUnreadable(format: CipherSettings) throws {
        // More than the cache of the connection that builds the copy, so that pages are written before it is closed.
        let file = try LegacyFile { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO t SELECT 'the text of a row' || printf('%0900d', i) FROM n
                """)
        }
        let texts = ["CREATE TABLE", "the text of a row"]
        func found(_ data: Data) -> [String] { texts.filter { data.range(of: Data($0.utf8)) != nil } }
        #expect(try found(Data(contentsOf: URL(filePath: file.path))) == texts)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)

        let (folder, seen) = (file.folder, SharedValue(Sight()))
        var options = ConversionOptions()
        options.format = format
        options.progress = { progress in
            let stage = progress.stage
            guard stage == .building || stage == .proving && seen.value.contents[stage] == nil else { return }
            do {
                let copies = try folder.names.filter { $0.hasPrefix("app.db-upgrade-") }
                let copy = try #require(copies.count == 1 ? folder.path(copies[0]) : nil)
                let mode = try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? NSNumber
                let content = try Data(contentsOf: URL(filePath: copy))
                seen.change {
                    $0.modes.insert(mode?.intValue)
                    if !content.isEmpty { $0.contents[stage] = content }
                }
            } catch {
                Issue.record(error)
            }
        }
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(report.outcome == .encrypted)
        #expect(seen.value.modes == [0o600])
        #expect(Set(seen.value.contents.keys) == [.building, .proving])
        for (stage, content) in seen.value.contents { #expect(found(content) == [], "\(stage)") }
        #expect(Int64(seen.value.contents[.proving]?.count ?? 0) == report.bytesAfter)
    }

    @Test("No readable byte of the rows is left in the folder")
    func nothingReadable() throws {
        let file = try Fixture.file(version: 23)
        #expect(try upgrade(file, CipherSettings(), TestKeys.provider()).outcome == .encrypted)
        for name in try file.folder.names {
            let data = try Data(contentsOf: file.folder.url.appending(path: name))
            #expect(data.range(of: Data("second".utf8)) == nil)
        }
    }

    @Test(
        "A provider that changes its answer, even after the copy is made, is refused, and the file stays unchanged",
        arguments: ["WAL", "DELETE"], [2, 3])
    func changingProvider(journal: String, call: Int) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        let original = try file.originalDump()
        let tally = Tally()
        let provider = ClosureKeyProvider { purpose, _ in try TestKeys.raw(tally.note(purpose) < call ? 1 : 2) }
        #expect(try storeError { try upgrade(file, CipherSettings(), provider) }?.code == .keyChanged)
        #expect(tally.all == [.createOrExisting] + Array(repeating: .existing, count: call - 1))
        #expect(try file.dump(key: nil) == original)
        #expect(try file.folder.names.filter { $0 != "app.db-wal" && $0 != "app.db-shm" } == ["app.db"])
    }

    @Test("A provider that fails on any request leaves the file unchanged", arguments: [1, 2, 3])
    func failingProvider(at call: Int) throws {
        struct Unreachable: Error {}
        let file = try Fixture.file(version: 23)
        let original = try file.originalDump()
        let before = try file.digest()
        let tally = Tally()
        let provider = ClosureKeyProvider { purpose, _ in
            if tally.note(purpose) == call { throw Unreachable() }
            return try TestKeys.raw()
        }
        #expect(try storeError { try upgrade(file, CipherSettings(), provider) }?.code == .keyUnavailable)
        if call == 1 { #expect(try file.digest() == before) }
        #expect(try file.dump(key: nil) == original)
        #expect(try upgrade(file, CipherSettings(), TestKeys.provider()).outcome == .encrypted)
    }

    @Test("A new key that is replaced while the file is rekeyed is refused, and the file keeps its old key")
    func changingNewKey() throws {
        let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        let isReplaced = SharedValue(false)
        var options = ConversionOptions()
        options.progress = { if $0.stage == .proving { isReplaced.change { $0 = true } } }
        let rekeying = Rekeying(
            at: try DatabasePaths(file.path), oldKey: TestKeys.provider(),
            newKey: TestKeys.provider { try TestKeys.raw(isReplaced.value ? 12 : 11) },
            formats: [CipherSettings()], newSettings: CipherSettings(), options: options)
        #expect(try storeError { try rekeying.run() }?.code == .keyChanged)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A provider is never asked to create a key for an encrypted file")
    func neverMints() throws {
        let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        let tally = Tally()
        let provider = ClosureKeyProvider { purpose, _ in
            _ = tally.note(purpose)
            return try TestKeys.raw()
        }
        #expect(try upgrade(file, CipherSettings(), provider).outcome == .alreadyEncrypted)
        #expect(tally.all.allSatisfy { $0 == .existing })
    }
}
