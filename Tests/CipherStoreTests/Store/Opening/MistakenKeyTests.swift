internal import CipherDatabaseConversion
internal import CipherKeyProviders
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Keys that are probably mistakes, and what is left of a key after its last use.
struct MistakenKeyTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let zeros = SecretBytes(repeatElement(0, count: 67))

    static let keys: [@Sendable () throws -> CipherKey] = [
        { try .passphrase(zeros) },
        { try .raw(SecretBytes(repeatElement(0, count: CipherKey.rawKeyLength))) },
        { try .passphrase("x‘\(String(repeating: "5e", count: 32))’") },
        { try .passphrase("0x\(String(repeating: "5e", count: 32))") },
        { try .passphrase("a") },
    ]

    @Test(
        "Every report on a file with a mistaken key has one warning, and the key still opens the file",
        arguments: 0..<5)
    func reports(number: Int) async throws {
        let key = try Self.keys[number]()
        let mistake = try #require(key.mistakes(CipherSettings()).first).description
        func warnings(_ warnings: [String]) -> Int { warnings.count { $0 == mistake } }
        let fixture = StoreFixture(folder)
        try fixture.writeLegacy()
        for outcome in [OpenReport.Outcome.encrypted, .opened] {
            let store = try await fixture.open(.closure { _, _ in key })
            let report = store.report
            await store.close()
            #expect(report.outcome == outcome)
            #expect(warnings(report.warnings) == 1)
        }
        let converter = try EncryptionUpgrade(path: fixture.path, provider: .closure { _, _ in key }).run()
        #expect(converter.outcome == .alreadyEncrypted && warnings(converter.warnings) == 1)
        let backup = try FileBackup(
            of: DatabasePaths(fixture.path), provider: .closure { _, _ in key }, formats: [CipherSettings()],
            to: folder.path("backup.db"), backupProvider: .closure { _, _ in key }, options: ConversionOptions()
        ).run()
        #expect(warnings(backup.warnings) == 1)
        var other = StoreFixture(folder, name: "new.db")
        other.configuration.sharesFolder = true
        let made = try await other.open(.closure { _, _ in key })
        #expect(made.report.outcome == .created && warnings(made.report.warnings) == 1)
        await made.close()
    }

    @Test("A few rounds of derivation cause a warning, but not with a raw key")
    func rounds() throws {
        for (key, count) in [(try CipherKey.passphrase("correct horse"), 1), (try TestKeys.raw(), 0)] {
            let path = folder.path("rounds.db")
            try? FileManager.default.removeItem(atPath: path)
            try LegacyFile.write(path, script: "CREATE TABLE t(a)")
            var options = ConversionOptions()
            options.format = CipherSettings(kdfIterations: 1)
            let report = try EncryptionUpgrade(path: path, provider: .closure { _, _ in key }, options: options).run()
            #expect(report.warnings.count { $0 == KeyMistake.fewRounds.description } == count)
        }
    }

    @Test("A key change warns about the new key, not about the old one")
    func keyChange() throws {
        let path = folder.path("change.db")
        try LegacyFile.write(path, key: .passphrase("a"), script: "CREATE TABLE t(a)")
        let (old, new): (any KeyProvider, any KeyProvider) = (
            .closure { _, _ in try .passphrase("a") }, .closure { _, _ in try .passphrase("correct horse") }
        )
        func rekey(_ old: any KeyProvider, _ new: any KeyProvider) throws -> [String] {
            try Rekeying(
                at: DatabasePaths(path), oldKey: old, newKey: new, formats: [CipherSettings()],
                newSettings: CipherSettings(), options: ConversionOptions()
            ).run().warnings.besidesLeases
        }
        #expect(try rekey(old, new).isEmpty)
        #expect(try rekey(new, old) == [KeyMistake.oneCharacter.description])
    }

    @Test(
        "Two stores on a file share the derived key, and nothing of the passphrase is left when both are closed",
        .timeLimit(.minutes(5)))
    func trace() async throws {
        let key = try CipherKey.passphrase("the passphrase of this test")
        let fixture = StoreFixture(folder)
        let first = try await fixture.open(.closure { _, _ in key })
        let salt = SecretBytes(try Data(contentsOf: URL(filePath: fixture.path)).prefix(CipherKey.saltLength))
        func isTraced() throws -> Bool {
            try DerivedKeys.inUse.holdTrace(of: key, salt: salt, settings: CipherSettings())
        }
        let second = try await fixture.open(.closure { _, _ in key })
        #expect(try isTraced())
        await first.close()
        #expect(try isTraced())
        await second.close()
        // The threads that have closed the connections release them when they end.
        while try isTraced() { await Task.yield() }
        #expect(first.path == second.path)
    }

    @Test("Nothing of a passphrase is left after a conversion, whether it succeeds or fails")
    func traceOfConversion() throws {
        let key = try CipherKey.passphrase("another passphrase")
        let path = folder.path("app.db")
        try LegacyFile.write(path, script: "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        for outcome in [EncryptionReport.Outcome.encrypted, .alreadyEncrypted] {
            #expect(try EncryptionUpgrade(path: path, provider: .closure { _, _ in key }).run().outcome == outcome)
        }
        let salt = SecretBytes(try Data(contentsOf: URL(filePath: path)).prefix(CipherKey.saltLength))
        let wrong = try CipherKey.passphrase("a wrong passphrase")
        _ = try? EncryptionUpgrade(path: path, provider: .closure { _, _ in wrong }).run()
        for key in [key, wrong] {
            #expect(try !DerivedKeys.inUse.holdTrace(of: key, salt: salt, settings: CipherSettings()))
        }
    }
}
