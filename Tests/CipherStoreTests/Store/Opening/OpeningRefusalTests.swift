internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Every refusal leaves every byte of the database and its sidecars unchanged, including a live log.
struct OpeningRefusalTests {
    private typealias Fixture = OpeningFixture

    /// A file that is refused, with the configuration that refuses it.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: StoreError.Code
        let configuration: Configuration
        let file: @Sendable () throws -> LegacyFile

        init(
            _ description: String, _ code: StoreError.Code,
            _ encryption: Configuration.Encryption = .init(sinceVersion: 24),
            _ file: @escaping @Sendable () throws -> LegacyFile
        ) {
            testDescription = description
            self.code = code
            configuration = OpeningFixture.configuration(encryption)
            self.file = file
        }
    }

    @Test("A refusal changes nothing", arguments: Self.refusals)
    func refuse(refusal: Refusal) throws {
        let file = try refusal.file()
        let before = try file.digest()
        let names = try file.folder.names
        for _ in 0..<2 {
            let error = try storeError { try Fixture.open(file.folder, refusal.configuration) }
            #expect(error?.code == refusal.code)
            #expect(try file.digest() == before)
            #expect(try file.folder.names == names)
        }
    }

    @Test(
        "A database name that leads out of the app's directory is refused, and nothing is created",
        arguments: ["", ".", "..", "../up.db", "inner/app.db", "/absolute.db", "x\u{0}y"])
    func outsideNames(name: String) async throws {
        let folder = try TemporaryFolder()
        for inner in ["app", "app/inner"] {
            try FileManager.default.createDirectory(atPath: folder.path(inner), withIntermediateDirectories: false)
        }
        let directory = folder.url.appending(path: "app")
        let before = try [FolderDigest(folder.url), FolderDigest(directory)]
        let configuration = Configuration(databaseName: name, version: 1)
        #expect(
            try await failure(StoreError.self) {
                try await EncryptedStore.open(configuration, directory: directory, keyProvider: TestKeys.provider())
            }.code == .configuration)
        #expect(
            try await failure(StoreError.self) {
                try await EncryptedStore.plan(configuration, directory: directory, keyProvider: TestKeys.provider())
            }.code == .configuration)
        let accounts = AccountStores(
            configuration, directory: directory, keyProvider: { _ in TestKeys.provider() })
        #expect(try await failure(StoreError.self) { try await accounts.open("ana") }.code == .configuration)
        #expect(try await failure(StoreError.self) { try await accounts.remove("ana") }.code == .configuration)
        #expect(try [FolderDigest(folder.url), FolderDigest(directory)] == before)
    }

    static let refusals: [Refusal] = plaintext + encrypted + foreign

    private static let plaintext: [Refusal] = [
        Refusal("plaintext at the threshold", .unexpectedPlaintext) { try Fixture.file(version: 24) },
        Refusal("plaintext at the app's version", .unexpectedPlaintext) { try Fixture.file(version: 26) },
        Refusal("plaintext, newer than the app", .downgrade) { try Fixture.file(version: 27) },
        Refusal("plaintext, newer than the app, encryption off", .downgrade, .init(isEnabled: false)) {
            try Fixture.file(version: 27)
        },
        Refusal("a table sorted by a collation that nobody registered", .missingCollation) {
            try LegacyFile(unclosed: true) { connection in
                try connection.register(SchemaHazardTests.backwards)
                _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
                try connection.executeScript(
                    "CREATE TABLE t(a TEXT COLLATE backwards UNIQUE); INSERT INTO t VALUES ('x'); PRAGMA user_version = 3"
                )
            }
        },
    ]

    private static let encrypted: [Refusal] = [
        Refusal("encrypted with another key", .keyDoesNotFit) {
            try Fixture.file(version: 23, encryptedWith: TestKeys.raw(8))
        },
        Refusal("encrypted with a passphrase", .keyDoesNotFit) {
            try Fixture.file(version: 23, encryptedWith: TestKeys.passphrase())
        },
        Refusal("encrypted, newer than the app", .downgrade) {
            try Fixture.file(version: 27, encryptedWith: TestKeys.raw())
        },
        Refusal("encrypted, encryption off", .encryptionDisabled, .init(isEnabled: false)) {
            try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
        },
        Refusal("encrypted, encryption off, another key", .keyDoesNotFit, .init(isEnabled: false)) {
            try Fixture.file(version: 26, encryptedWith: TestKeys.raw(8))
        },
    ]

    private static let foreign: [Refusal] = [
        Refusal("noise", .keyDoesNotFit) {
            try made(of: Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 3) }))
        },
        Refusal("a text file", .keyDoesNotFit) { try made(of: Data("not a database\n".utf8)) },
        Refusal("a plaintext file that was cut", .corrupt) {
            let file = try Fixture.file(
                version: 3, journal: "DELETE", extra: "CREATE TABLE big(a); INSERT INTO big VALUES (zeroblob(30000));")
            return try made(of: Data(contentsOf: URL(filePath: file.path)).prefix(12288))
        },
        Refusal("a plaintext log beside an encrypted file", .staleSidecar) {
            let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw(), journal: "DELETE")
            let other = try Fixture.file(version: 26)
            try FileManager.default.copyItem(atPath: other.path + "-wal", toPath: file.path + "-wal")
            return file
        },
        Refusal("an encrypted log beside a plaintext file", .staleSidecar) {
            let file = try Fixture.file(version: 3, journal: "DELETE")
            let other = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
            try FileManager.default.copyItem(atPath: other.path + "-wal", toPath: file.path + "-wal")
            return file
        },
        Refusal("a log of a database that is gone", .staleSidecar) {
            let file = try Fixture.file(version: 26)
            try FileManager.default.removeItem(atPath: file.path)
            return file
        },
        Refusal("an encrypted log of a database that is gone", .staleSidecar) {
            let file = try Fixture.file(version: 26, encryptedWith: TestKeys.raw())
            try FileManager.default.removeItem(atPath: file.path)
            return file
        },
        Refusal("a log with rows beside a file of 0 bytes", .staleSidecar) {
            let file = try Fixture.file(version: 26)
            try Data().write(to: URL(filePath: file.path))
            return file
        },
    ]

    private static func made(of data: Data) throws -> LegacyFile {
        let folder = try TemporaryFolder()
        try data.write(to: folder.url.appending(path: "app.db"))
        return try LegacyFile(copying: folder.path("app.db"))
    }
}
