internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Changes to another key, to another format, and to no key.
///
/// ``Hazard`` tests these conversions with every hazard; the tests here are about refusals.
struct RekeyingTests {
    private typealias Fixture = OpeningFixture

    private static let old: @Sendable () throws -> CipherKey = { try TestKeys.raw() }
    private static let new: @Sendable () throws -> CipherKey = { try TestKeys.passphrase() }

    private func rekey(
        _ file: LegacyFile, old: @escaping @Sendable () throws -> CipherKey = Self.old,
        new: (any KeyProvider)? = TestKeys.provider(Self.new), formats: [CipherSettings] = [CipherSettings()],
        to settings: CipherSettings = CipherSettings()
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try Rekeying(
            at: DatabasePaths(file.path), oldKey: TestKeys.provider(old), newKey: new, formats: formats,
            newSettings: settings, options: options
        ).run()
    }

    private func decrypt(
        _ file: LegacyFile, with key: @escaping @Sendable () throws -> CipherKey = Self.old
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try Decryption(
            path: file.path, provider: TestKeys.provider(key), formats: [CipherSettings()], options: options
        ).run()
    }

    @Test("The new key opens the file and the old one does not, and the rows of the -wal and the journal mode are kept")
    func changesKey() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        #expect(try rekey(file).outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
        #expect(try file.read(key: Self.new()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(throws: DatabaseError.self) { try Fixture.rows(file, key: Self.old()) }
        #expect(try rekey(file).outcome == .alreadyRekeyed)
    }

    @Test("A FIFO with the name of a kept original does not hold up a change of the key")
    func fifo() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        try #require(mkfifo(file.path + "-damaged", 0o600) == 0)
        let report = try rekey(file)
        #expect(report.outcome == .rekeyed && report.warnings.besidesLeases.isEmpty)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
    }

    @Test("A file is converted from every older cipher format to the newest", arguments: [1, 2, 3])
    func changesFormat(format: Int) throws {
        guard format < Engine.current.defaultCompatibility else { return }
        let settings = CipherSettings(compatibility: format)
        // A raw key is the same in formats 2 and 3, which differ only in the key derivation.
        let file = try Fixture.file(version: 24, encryptedWith: Self.new(), settings: settings)
        let formats = (1...Engine.current.defaultCompatibility).reversed().map { CipherSettings(compatibility: $0) }
        #expect(try rekey(file, old: Self.new, new: nil, formats: formats).outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
    }

    @Test(
        "A readable header can be added and removed", .enabled(if: Engine.current.hasCompatibilityPragma))
    func changesHeader() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let salted: @Sendable () throws -> CipherKey = { try TestKeys.rawWithSalt() }
        let settings = CipherSettings(plaintextHeaderSize: 32)
        #expect(try rekey(file, new: TestKeys.provider(salted), to: settings).outcome == .rekeyed)
        #expect(try file.startsAsPlaintext)
        #expect(try Fixture.rows(file, key: salted(), settings: settings) == Fixture.allRows)
        #expect(try rekey(file, old: salted).outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
        #expect(try storeError { try rekey(file, old: Self.new, new: nil, to: settings) }?.code == .saltMissing)
    }

    @Test(
        "A report on adding, keeping or removing a readable header says that the header is not authenticated",
        .enabled(if: Engine.current.hasCompatibilityPragma))
    func reportsHeader() throws {
        let readable = CipherSettings(plaintextHeaderSize: 32)
        let (first, second): (@Sendable () throws -> CipherKey, @Sendable () throws -> CipherKey) = (
            { try TestKeys.rawWithSalt(3) }, { try TestKeys.rawWithSalt(4) }
        )
        let file = try Fixture.file(version: 24)
        var options = ConversionOptions()
        options.format = readable
        let encrypted = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(first), options: options)
            .run()
        #expect(encrypted.outcome == .encrypted)
        #expect(encrypted.authentication == .everyPageInUseExceptHeader)
        let kept = try rekey(file, old: first, new: TestKeys.provider(second), to: readable)
        #expect(kept.authentication == .everyPageInUseExceptHeader)
        // What was readable may have been changed before the conversion.
        let removed = try rekey(file, old: second, new: TestKeys.provider(first))
        #expect(removed.authentication == .everyPageInUseExceptHeader)
        #expect(try rekey(file, old: first, new: TestKeys.provider(second)).authentication == .everyPage)
        let added = try rekey(file, old: second, new: TestKeys.provider(first), to: readable)
        #expect(added.authentication == .everyPageInUseExceptHeader)
    }

    @Test(
        "Another key is distinguished from damage if the header is readable",
        .enabled(if: Engine.current.hasCompatibilityPragma))
    func keepsHeader() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let (first, second): (@Sendable () throws -> CipherKey, @Sendable () throws -> CipherKey) = (
            { try TestKeys.rawWithSalt(3) }, { try TestKeys.rawWithSalt(4) }
        )
        let settings = CipherSettings(plaintextHeaderSize: 32)
        #expect(try rekey(file, new: TestKeys.provider(first), to: settings).outcome == .rekeyed)
        #expect(try storeError { try decrypt(file, with: second) }?.code == .keyDoesNotFit)
        #expect(try rekey(file, old: first, new: TestKeys.provider(second), to: settings).outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: second(), settings: settings) == Fixture.allRows)
    }

    @Test("A file that cannot be rekeyed is refused, and every file stays unchanged")
    func refuses() throws {
        let file = try Fixture.file(version: 24, encryptedWith: TestKeys.raw(9))
        let before = try file.digest()
        #expect(try storeError { try rekey(file) }?.code == .keyDoesNotFit)
        #expect(try storeError { try decrypt(file) }?.code == .keyDoesNotFit)
        #expect(try file.digest() == before)

        let plaintext = try Fixture.file(version: 24)
        let untouched = try plaintext.digest()
        #expect(try storeError { try rekey(plaintext) }?.code == .unexpectedPlaintext)
        #expect(try decrypt(plaintext).outcome == .alreadyPlaintext)
        #expect(try plaintext.digest() == untouched)
    }

    @Test("A new key equal to the old one is refused, whatever opens the file, and every file stays unchanged")
    func refusesEqualKeys() throws {
        for key in [Self.old, Self.new] {
            let file = try Fixture.file(version: 24, encryptedWith: Self.old())
            let before = try file.digest()
            let error = try storeError { try rekey(file, old: key, new: TestKeys.provider(key)) }
            #expect(error?.code == .keyUnchanged)
            #expect(try file.digest() == before)
        }
    }

    @Test("A provider whose second answer is another new key is refused before anything is changed")
    func refusesWaveringProvider() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let before = try file.digest()
        let wavering = ClosureKeyProvider { purpose, _ in
            purpose == .existing ? try TestKeys.raw(3) : try TestKeys.raw(4)
        }
        #expect(try storeError { try rekey(file, new: wavering) }?.code == .keyChanged)
        #expect(try file.digest() == before)
    }

    @Test("A file that another connection writes or has open in WAL mode is busy, and keeps its journal mode")
    func busy() throws {
        for journal in ["WAL", "DELETE"] {
            let file = try Fixture.file(version: 24, encryptedWith: Self.old(), journal: journal)
            let other = try Connection(
                path: file.path, mode: .readWrite, key: Self.old(), settings: CipherSettings(), busyTimeout: .zero)
            try other.execute("BEGIN IMMEDIATE")
            #expect(try storeError { try rekey(file) }?.code == .busy)
            #expect(try storeError { try decrypt(file) }?.code == .busy)
            try other.execute("ROLLBACK")
            other.close()
            #expect(try Fixture.rows(file, key: Self.old()) == Fixture.allRows)
            let mode = try file.read(key: Self.old()) { try $0.value(String.self, "PRAGMA journal_mode") }
            #expect(mode == journal.lowercased())
        }
    }

    @Test("Leftovers of a killed run are removed, and the original journal mode is restored")
    func afterACrash() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old(), journal: "DELETE")
        var killed = try KilledRun(file.folder, wasWriteAheadLog: true)
        try killed.leaveCopy()
        #expect(try decrypt(file).outcome == .decrypted)
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        #expect(try file.read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try file.folder.names.filter { $0.contains("upgrade") || $0.contains("attempt") } == [])
    }
}
