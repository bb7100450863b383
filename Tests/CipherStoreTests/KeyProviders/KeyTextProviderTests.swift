internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Texts that no provider takes for a key.
enum KeyTexts {
    static let wrong = [
        "SQLite format 3\0 and more", String(repeating: "\0", count: 67), "secret\0", "one\ntwo\n", "secret\n\n",
        "-----BEGIN KEY-----\nabc\n-----END KEY-----\n", "secret\r",
    ]
}

/// Keys from closures, the environment and systemd.
struct KeyTextProviderTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let raw = TestKeys.text(15)

    private func environment(_ values: [String: String]) -> @Sendable (String) -> SecretBytes? {
        { values[$0].map { SecretBytes($0.utf8) } }
    }

    @Test func `A closure is given the purpose and the path of the database`() throws {
        let provider: any KeyProvider = .closure { purpose, database in
            try .passphrase("\(purpose) \(database)")
        }
        let key = try provider.key(for: .createOrExisting, database: "/data/app.db")
        #expect(key == (try CipherKey.passphrase("createOrExisting /data/app.db")))
    }

    @Test func `A closure's key error becomes a malformed key, and its own errors stay what they are`() throws {
        struct Locked: Error {}
        let malformed: any KeyProvider = .closure { _, _ in try .passphrase("x'00'") }
        let error = #expect(throws: StoreError.self) { try malformed.key(for: .existing, database: "app.db") }
        #expect(error?.code == .keyMalformed)
        let locked: any KeyProvider = .closure { _, _ in throw Locked() }
        #expect(throws: Locked.self) { try locked.key(for: .existing, database: "app.db") }
    }

    @Test(
        "The text of a variable is a passphrase or a raw key",
        arguments: [
            ("secret", CipherKey.Form.passphrase), ("secret\n", .passphrase), (raw, .raw), (raw + "\r\n", .raw),
            (TestKeys.text(15, count: 48), .rawWithSalt),
        ])
    func variable(text: String, form: CipherKey.Form) throws {
        let provider = EnvironmentKeyProvider(variable: "KEY", environment: environment(["KEY": text]))
        let key = try provider.key(for: .existing, database: "app.db")
        #expect(key.form == form)
        let trimmed = text.unicodeScalars.filter { $0 != "\n" && $0 != "\r" }
        #expect(key.text == SecretBytes(String(String.UnicodeScalarView(trimmed)).utf8))
    }

    @Test(
        "A variable without a valid key is refused, and its text is not shown",
        arguments: [
            (nil, StoreError.Code.keyUnavailable), ("", .keyMalformed), ("\n", .keyMalformed),
            ("x'c0ffee'", .keyMalformed),
            ("X'c0ffee", .keyMalformed),
        ] as [(String?, StoreError.Code)])
    func noVariable(text: String?, code: StoreError.Code) {
        let values = text.map { ["KEY": $0] } ?? [:]
        let provider = EnvironmentKeyProvider(variable: "KEY", environment: environment(values))
        let error = #expect(throws: StoreError.self) { try provider.key(for: .existing, database: "app.db") }
        #expect(error?.code == code)
        #expect(error?.description.contains("c0ffee") == false)
        #expect(error?.description.contains("KEY") == true)
    }

    @Test(
        "A variable or credential that holds something other than one line of text is refused",
        arguments: KeyTexts.wrong)
    func otherContent(text: String) throws {
        try folder.write(text, to: "db-key")
        let providers: [any KeyProvider] = [
            EnvironmentKeyProvider(variable: "KEY", environment: environment(["KEY": text])),
            SystemdCredentialKeyProvider(
                name: "db-key", environment: environment(["CREDENTIALS_DIRECTORY": folder.path("")])),
        ]
        for provider in providers {
            let error = #expect(throws: StoreError.self) { try provider.key(for: .existing, database: "app.db") }
            #expect(error?.code == .keyMalformed)
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test func `The process's own environment is read`() throws {
        let path = try #require(ProcessInfo.processInfo.environment["PATH"])
        let provider: any KeyProvider = .environment("PATH")
        #expect(try provider.key(for: .existing, database: "app.db") == .passphrase(path))
        let missing: any KeyProvider = .environment("PATH\0")
        let error = #expect(throws: StoreError.self) { try missing.key(for: .existing, database: "app.db") }
        #expect(error?.code == .keyUnavailable)
    }

    @Test("A systemd credential is read, whatever its mode", arguments: [0o400, 0o440, 0o600])
    func credential(mode: Int) throws {
        try folder.write("\(Self.raw)\n", to: "db-key", mode: mode)
        let provider = SystemdCredentialKeyProvider(
            name: "db-key", environment: environment(["CREDENTIALS_DIRECTORY": folder.path("")]))
        #expect(try provider.key(for: .existing, database: "app.db").form == .raw)
    }

    @Test(
        "A missing or invalid systemd credential is refused",
        arguments: [
            ("missing", StoreError.Code.keyUnavailable), ("", .keyUnavailable), ("..", .keyUnavailable),
            ("../db-key", .keyUnavailable), ("folder", .keyUnavailable), ("empty", .keyMalformed),
            ("large", .keyMalformed),
        ])
    func noCredential(name: String, code: StoreError.Code) throws {
        try FileManager.default.createDirectory(atPath: folder.path("inner/folder"), withIntermediateDirectories: true)
        try folder.write("secret", to: "db-key")
        try folder.write("", to: "inner/empty")
        try folder.write(String(repeating: "a", count: KeyText.maximumSize + 1), to: "inner/large")
        let provider = SystemdCredentialKeyProvider(
            name: name, environment: environment(["CREDENTIALS_DIRECTORY": folder.path("inner")]))
        let error = #expect(throws: StoreError.self) { try provider.key(for: .existing, database: "app.db") }
        #expect(error?.code == code)
    }

    @Test func `A process that systemd did not start has no credentials`() throws {
        let provider = SystemdCredentialKeyProvider(name: "db-key", environment: environment([:]))
        let error = #expect(throws: StoreError.self) { try provider.key(for: .existing, database: "app.db") }
        #expect(error?.code == .keyUnavailable)
        #expect(error?.advice.contains("LoadCredential=db-key") == true)
    }

    @Test(
        "A raw key in place of a name or path is refused and not repeated, and no key file is created",
        arguments: ["x'\(String(repeating: "c0ffee11", count: 8))'", String(repeating: "c0ffee11", count: 12)])
    func keyAsName(key: String) throws {
        let providers: [any KeyProvider] = [
            .file(key, createIfMissing: true), .environment(key), .systemdCredential(key),
        ]
        for provider in providers {
            let error = #expect(throws: StoreError.self) {
                try provider.key(for: .createOrExisting, database: "app.db")
            }
            #expect(error?.code == .keyUnavailable)
            #expect(error?.detail.hasSuffix("but was given the key itself") == true, "\(error?.code as Any)")
            #expect(error?.description.hasPrefix("app.db: ") == true)
            #expect(error?.description.contains("c0ffee") == false)
        }
        #expect(!FileManager.default.fileExists(atPath: key))
    }
}
