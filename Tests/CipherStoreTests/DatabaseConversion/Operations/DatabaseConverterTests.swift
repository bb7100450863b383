internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Swift code can do everything with a file that the command-line tool can.
struct DatabaseConverterTests {
    private let file: LegacyFile
    private let url: URL
    private let keys = TestKeys.provider()
    private let other = TestKeys.provider { try TestKeys.raw(9) }

    init() throws {
        file = try LegacyFile {
            try $0.executeScript(
                "CREATE TABLE note(body TEXT); INSERT INTO note VALUES ('one'), ('two'); PRAGMA user_version = 7")
        }
        url = URL(filePath: file.path)
    }

    /// Expects an error that leaves every byte unchanged.
    private func expectRefusal(
        _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async throws {
        let before = try file.digest()
        let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try await body() }
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(try file.digest() == before, sourceLocation: sourceLocation)
    }

    @Test("Decrypting restores every value")
    func decrypt() async throws {
        let original = try file.originalDump()
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        try await expectRefusal(.keyDoesNotFit) { try await DatabaseConverter.decrypt(url, keyProvider: other) }
        let report = try await DatabaseConverter.decrypt(url, keyProvider: keys)
        #expect(report.outcome == .decrypted)
        #expect(report.rows == 2)
        #expect(try file.dump(key: nil) == original)
        #expect(try await DatabaseConverter.decrypt(url, keyProvider: keys).outcome == .alreadyPlaintext)
    }

    @Test("A file that a rotation has not reached yet is decrypted with its old key")
    func decryptsUnderPreviousKey() async throws {
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        let rotation = KeyRotation(from: keys, to: other)
        #expect(try await DatabaseConverter.verify(url, keyProvider: rotation).isSound)
        #expect(try await DatabaseConverter.inspect(url, keyProvider: rotation).state == .encrypted)
        try await expectRefusal(.keyDoesNotFit) { try await DatabaseConverter.encrypt(url, keyProvider: rotation) }
        #expect(try await DatabaseConverter.decrypt(url, keyProvider: rotation).outcome == .decrypted)
    }

    @Test("A file gets another key, and is left unchanged if it already has that key")
    func changeKey() async throws {
        try await expectRefusal(.unexpectedPlaintext) {
            try await DatabaseConverter.changeKey(of: url, from: keys, to: other)
        }
        let original = try file.originalDump()
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        try await expectRefusal(.keyUnchanged) {
            try await DatabaseConverter.changeKey(of: url, from: keys, to: keys)
        }
        #expect(try await DatabaseConverter.changeKey(of: url, from: keys, to: other).outcome == .rekeyed)
        #expect(try file.dump(key: TestKeys.raw(9)).differences(from: original).isEmpty)
        #expect(try await DatabaseConverter.changeKey(of: url, from: keys, to: other).outcome == .alreadyRekeyed)
    }

    @Test("A file is converted to another format and keeps its key")
    func changeFormat() async throws {
        var options = ConversionOptions()
        options.format = CipherSettings(compatibility: 3)
        try await DatabaseConverter.encrypt(url, keyProvider: keys, options: options)
        let report = try await DatabaseConverter.changeKey(
            of: url, from: keys, to: nil, formats: [CipherSettings(compatibility: 3)])
        #expect(report.outcome == (CipherSettings().compatibility == 3 ? .alreadyRekeyed : .rekeyed))
        #expect(try await DatabaseConverter.verify(url, keyProvider: keys).isSound)
    }

    @Test("A shadow proof reports how an encryption would go, and leaves the file unchanged")
    func shadowProof() async throws {
        let before = try file.digest()
        let report = try await DatabaseConverter.shadowProof(of: url, keyProvider: keys)
        #expect(report.outcome == .shadow)
        #expect(report.rows == 2)
        #expect(try file.digest() == before)
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        #expect(try await DatabaseConverter.shadowProof(of: url, keyProvider: keys).outcome == .alreadyEncrypted)
        try await expectRefusal(.keyDoesNotFit) {
            _ = try await DatabaseConverter.shadowProof(of: url, keyProvider: other)
        }
    }

    @Test("A sound file is reported with its state, and a file with another key is refused")
    func verify() async throws {
        let plaintext = try await DatabaseConverter.verify(url, keyProvider: keys)
        #expect(plaintext.isSound)
        #expect(plaintext.state == .plaintext)
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        let encrypted = try await DatabaseConverter.verify(url, keyProvider: keys)
        #expect(encrypted.isSound)
        #expect(encrypted.state == .encrypted)
        #expect(encrypted.complaints == [])
        try await expectRefusal(.keyDoesNotFit) { _ = try await DatabaseConverter.verify(url, keyProvider: other) }
    }

    @Test("An inspection reports what a file is, with and without a key")
    func inspect() async throws {
        let plaintext = try await DatabaseConverter.inspect(url)
        #expect(plaintext.state == .plaintext)
        #expect(plaintext.version == 7)
        #expect(
            try await DatabaseConverter.inspect(url.deletingLastPathComponent().appending(path: "other.db")).state
                == .missing)
        try await DatabaseConverter.encrypt(url, keyProvider: keys)
        #expect(try await DatabaseConverter.inspect(url).state == .opaque)
        #expect(try await DatabaseConverter.inspect(url, keyProvider: keys).state == .encrypted)
        try await expectRefusal(.keyDoesNotFit) { _ = try await DatabaseConverter.inspect(url, keyProvider: other) }
    }

    @Test("The blocking counterparts of the conversions do the same")
    func blocking() throws {
        #expect(try DatabaseConverter.shadowProofBlocking(of: url, keyProvider: keys).outcome == .shadow)
        try DatabaseConverter.encryptBlocking(url, keyProvider: keys)
        #expect(try DatabaseConverter.verifyBlocking(url, keyProvider: keys).isSound)
        #expect(try DatabaseConverter.inspectBlocking(url, keyProvider: keys).state == .encrypted)
        #expect(try DatabaseConverter.changeKeyBlocking(of: url, from: keys, to: other).outcome == .rekeyed)
        #expect(try DatabaseConverter.decryptBlocking(url, keyProvider: other).outcome == .decrypted)
    }

    @Test("An invalid format and an empty list of formats are refused before the file is examined")
    func impossibleFormats() async throws {
        for formats in [[], [CipherSettings(compatibility: 9)]] {
            try await expectRefusal(.configuration) {
                try await DatabaseConverter.decrypt(url, keyProvider: keys, formats: formats)
            }
            try await expectRefusal(.configuration) {
                _ = try await DatabaseConverter.verify(url, keyProvider: keys, formats: formats)
            }
        }
    }
}
