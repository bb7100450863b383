internal import CipherDatabaseConversion
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The conversions that replace a file with its copy, for tests that try all of them.
enum Conversions: String, CaseIterable, CustomTestStringConvertible, Sendable {
    case encrypt, rekey, decrypt, launch

    var testDescription: String { rawValue }

    private static let newKey: @Sendable () throws -> CipherKey = { try TestKeys.raw(8) }

    private var oldKeyByte: UInt8? { self == .rekey || self == .decrypt ? 7 : nil }
    var oldKeyArgument: [String] { oldKeyByte.map { ["\($0)"] } ?? [] }

    var newKeyArgument: [String] {
        switch self {
        case .encrypt, .launch: ["7"]
        case .rekey: ["8"]
        case .decrypt: []
        }
    }

    /// Makes a file with a table `t` and three rows, in its form before the conversion.
    func file(journal: String) throws -> LegacyFile {
        try OpeningFixture.file(
            version: 23, encryptedWith: oldKeyByte.map { try TestKeys.raw($0) }, journal: journal)
    }

    /// Opens a connection to the file before the conversion.
    func oldConnection(_ file: LegacyFile) throws -> Connection {
        let connection = try Connection(path: file.path, mode: .readWrite, busyTimeout: .zero)
        if let oldKeyByte { try connection.setKey(TestKeys.raw(oldKeyByte), settings: CipherSettings()) }
        return connection
    }

    /// Converts the file.
    ///
    /// Returns the warnings.
    func run(_ file: LegacyFile, progress: (@Sendable (UpgradeProgress) -> Void)? = nil) throws -> [String] {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        options.progress = progress
        switch self {
        case .encrypt:
            return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
                .warnings
        case .rekey:
            return try Rekeying(
                at: DatabasePaths(file.path), oldKey: TestKeys.provider(), newKey: TestKeys.provider(Self.newKey),
                formats: [CipherSettings()], newSettings: CipherSettings(), options: options
            ).run().warnings
        case .decrypt:
            return try Decryption(
                path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
            ).run().warnings
        case .launch:
            return try StoreOpening(
                configuration: OpeningFixture.configuration(),
                directory: file.folder.url.path(percentEncoded: false), provider: TestKeys.provider(),
                options: options
            ).run().report.warnings
        }
    }

    /// Returns the result of a query on the file after the conversion.
    func values(_ file: LegacyFile, _ sql: SQL) throws -> [String] {
        let key: CipherKey? =
            switch self {
            case .encrypt, .launch: try TestKeys.raw()
            case .rekey: try Self.newKey()
            case .decrypt: nil
            }
        return try file.read(key: key) { try $0.values(String.self, sql) }
    }
}
