internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Key files, which are read only if nobody else can read them, and are created once.
struct FileKeyProviderTests {
    let folder: TemporaryFolder
    private let raw = TestKeys.text(15)

    init() throws {
        folder = try TemporaryFolder()
    }

    private func code(
        _ provider: some KeyProvider, _ purpose: KeyPurpose = .existing, database: String = "/nowhere/app.db"
    ) -> StoreError.Code? {
        let error = #expect(throws: StoreError.self) { try provider.key(for: purpose, database: database) }
        #expect(error?.description.contains("0f0f") == false)
        return error?.code
    }

    @Test("One trailing newline is not part of the key", arguments: ["", "\n", "\r\n"])
    func newline(end: String) throws {
        let path = try folder.write(raw + end, to: "key")
        let provider: any KeyProvider = .file(path)
        let key = try provider.key(for: .existing, database: "app.db")
        #expect(key.form == .raw)
        #expect(key.text == SecretBytes(raw.utf8))
    }

    @Test("A file that holds something other than one line of text is not a key file", arguments: KeyTexts.wrong)
    func otherContent(text: String) throws {
        #expect(code(.file(try folder.write(text, to: "key"))) == .keyMalformed)
        #expect(code(.file(folder.path("key"), createIfMissing: true), .createOrExisting) == .keyMalformed)
    }

    @Test("A key file that only its owner can access is read", arguments: [0o400, 0o600, 0o700])
    func privateModes(mode: Int) throws {
        let path = try folder.write(raw, to: "key", mode: mode)
        #expect(try FileKeyProvider(path: path).key(for: .existing, database: "app.db").form == .raw)
    }

    @Test(
        "A key file that other users can read or write is refused",
        arguments: [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o610])
    func openModes(mode: Int) throws {
        let path = try folder.write(raw, to: "key", mode: mode)
        let error = #expect(throws: StoreError.self) {
            try FileKeyProvider(path: path).key(for: .existing, database: "app.db")
        }
        #expect(error?.code == .keyFileInsecure)
        #expect(error?.advice.contains("chmod 600") == true)
        #expect(error?.path == path)
    }

    @Test("A key file of another user is refused", .enabled(if: geteuid() == 0, "only root can give files away"))
    func otherOwner() throws {
        let path = try folder.write(raw, to: "key")
        try #require(chown(path, 12_345, 12_345) == 0)
        #expect(code(.file(path)) == .keyFileInsecure)
    }

    @Test func `A raw key behind a byte order mark is refused and never a passphrase`() throws {
        let path = try folder.write("\u{feff}" + raw, to: "key")
        let error = #expect(throws: StoreError.self) {
            try FileKeyProvider(path: path).key(for: .existing, database: "app.db")
        }
        #expect(error?.code == .keyMalformed)
        #expect(error?.detail.contains("byte order mark") == true)
    }

    @Test func `A mounted secret is reached through its links`() throws {
        let path = try folder.write(raw, to: "..data")
        try FileManager.default.createSymbolicLink(atPath: folder.path("key"), withDestinationPath: path)
        #expect(try FileKeyProvider(path: folder.path("key")).key(for: .existing, database: "app.db").form == .raw)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        #expect(code(.file(folder.path("key"))) == .keyFileInsecure)
    }

    @Test func `What is no file of a key is refused without waiting`() throws {
        try #require(mkfifo(folder.path("fifo"), 0o600) == 0)
        #expect(code(.file(folder.path("fifo"))) == .keyUnavailable)
        #expect(code(.file(folder.path(""))) == .keyUnavailable)
        #expect(code(.file(folder.path("missing"))) == .keyUnavailable)
        #expect(code(.file(try folder.write("", to: "empty"))) == .keyMalformed)
        #expect(code(.file(try folder.write("x'0f0f'", to: "short"))) == .keyMalformed)
        let large = String(repeating: "a", count: KeyText.maximumSize)
        #expect(code(.file(try folder.write(large + "b", to: "large"))) == .keyMalformed)
        #expect(
            try FileKeyProvider(path: folder.write(large, to: "fits")).key(for: .existing, database: "a").form
                == .passphrase)
    }

    @Test func `The database is not taken for its own key file`() throws {
        let path = try folder.write(raw, to: "app.db")
        try FileManager.default.createSymbolicLink(atPath: folder.path("key"), withDestinationPath: path)
        #expect(code(.file(folder.path("key")), database: path) == .keyUnavailable)
    }

    @Test func `A key is made only when it is allowed and asked for`() throws {
        let path = folder.path("key")
        #expect(code(.file(path), .createOrExisting) == .keyUnavailable)
        #expect(code(.file(path, createIfMissing: true), .existing) == .keyUnavailable)
        #expect(try folder.names.isEmpty)
        let provider: any KeyProvider = .file(path, createIfMissing: true)
        let key = try provider.key(for: .createOrExisting, database: "app.db")
        #expect(key.form == .raw)
        #expect(try provider.key(for: .createOrExisting, database: "app.db") == key)
        #expect(try provider.key(for: .existing, database: "app.db") == key)
        #expect(try folder.names == ["key"])
    }

    @Test func `All that make the key at once get the same one`() async throws {
        let path = folder.path("key")
        let keys = try await withThrowingTaskGroup(of: CipherKey.self) { group in
            for _ in 0..<24 {
                group.addTask {
                    try FileKeyProvider(path: path, createIfMissing: true).key(
                        for: .createOrExisting, database: "app.db")
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let first = try #require(keys.first)
        #expect(keys.count == 24)
        #expect(keys.allSatisfy { $0 == first })
        #expect(try folder.names == ["key"])
    }

    @Test func `A link that leads nowhere is not filled`() throws {
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("key"), withDestinationPath: folder.path("elsewhere"))
        #expect(code(.file(folder.path("key"), createIfMissing: true), .createOrExisting) == .keyUnavailable)
        #expect(try folder.names == ["key"])
    }
}
