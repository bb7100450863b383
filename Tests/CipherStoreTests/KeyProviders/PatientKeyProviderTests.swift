internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Providers that do not answer: the wait ends, and nothing has changed.
struct PatientKeyProviderTests {
    private typealias Fixture = OpeningFixture

    /// Answers when it is released.
    private final class Gate: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        func wait() { semaphore.wait() }
        func open() { semaphore.signal() }
    }

    private func open(
        _ folder: TemporaryFolder, _ provider: some KeyProvider, timeout: Duration = .zero,
        cancellation: UpgradeCancellation? = nil
    ) throws -> StoreOpening.Opened {
        var options = ConversionOptions()
        options.keyTimeout = timeout
        options.cancellation = cancellation
        return try StoreOpening(
            configuration: Fixture.configuration(), directory: folder.path(""), provider: provider, options: options
        ).run()
    }

    private static func file(_ kind: String) throws -> LegacyFile {
        try kind == "legacy" ? Fixture.file(version: 23) : Fixture.file(version: 26, encryptedWith: TestKeys.raw())
    }

    @Test(
        "A provider that answers too late is abandoned, and the file stays unchanged",
        arguments: ["legacy", "encrypted"])
    func late(kind: String) throws {
        let file = try Self.file(kind)
        let before = try file.digest()
        let gate = Gate()
        let provider = ClosureKeyProvider { _, _ in
            gate.wait()
            return try TestKeys.raw()
        }
        let error = try storeError { try open(file.folder, provider) }
        gate.open()
        #expect(error?.code == .keyStoreUnavailable)
        #expect(try file.digest() == before)
        #expect(try open(file.folder, TestKeys.provider(), timeout: .seconds(600)).report.outcome != .created)
    }

    @Test("A provider whose previous key arrives too late is abandoned too")
    func latePreviousKey() throws {
        let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        let before = try file.digest()
        let gate = Gate()
        let old = ClosureKeyProvider { _, _ in
            gate.wait()
            return try TestKeys.raw()
        }
        // The new key must be in time, even on a slow machine.
        let cancellation = UpgradeCancellation()
        let new = ClosureKeyProvider { _, _ in try TestKeys.raw(8) }
        let late = ClosureKeyProvider { purpose, database in
            cancellation.cancel()
            return try old.key(for: purpose, database: database)
        }
        let error = try storeError {
            try open(file.folder, KeyRotation(from: late, to: new), timeout: .seconds(600), cancellation: cancellation)
        }
        gate.open()
        #expect(error?.code == .cancelled)
        #expect(try file.digest() == before)
    }

    @Test("A cancellation ends the wait for a key", arguments: ["legacy", "encrypted"])
    func cancelled(kind: String) throws {
        let file = try Self.file(kind)
        let before = try file.digest()
        let gate = Gate()
        let cancellation = UpgradeCancellation()
        let provider = ClosureKeyProvider { _, _ in
            cancellation.cancel()
            gate.wait()
            return try TestKeys.raw()
        }
        let error = try storeError {
            try open(file.folder, provider, timeout: .seconds(600), cancellation: cancellation)
        }
        gate.open()
        #expect(error?.code == .cancelled)
        #expect(try file.digest() == before)
    }
}
