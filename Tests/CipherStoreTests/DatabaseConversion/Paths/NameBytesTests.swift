internal import CipherDatabaseConversion
internal import CipherErrors
import CipherPlatform
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Names that differ only in their bytes.
@Suite struct NameBytesTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A folder with a plaintext database of one row.
    private func make(_ name: [UInt8], row: String) throws -> String {
        let inner = SystemPath.text(Array(folder.path("").utf8) + name)
        try FileSystem.createFolder(inner)
        try LegacyFile.write(
            inner + "/app.db",
            script: "CREATE TABLE chat(uid TEXT, body TEXT); INSERT INTO chat VALUES ('\(row)', '')")
        return inner
    }

    @Test("The bytes of a URL identify the file, in an upgrade and at a launch")
    func url() async throws {
        let mine = try make([0x78, 0xff], row: "mine")
        let sibling = try make(Array("x\u{FFFD}".utf8), row: "other")
        let before = try FolderDigest(URL(filePath: sibling))
        let url = try #require(URL(string: folder.url.absoluteString + "/x%FF/app.db"))
        try await DatabaseConverter.encrypt(url, keyProvider: TestKeys.provider())
        #expect(try Inspector(path: mine + "/app.db").surface() == .opaque(hasPlaintextHeader: false))
        let store = try await EncryptedStore.open(
            .declaring(["chat": ["uid": "TEXT", "body": "TEXT"]]), directory: url.deletingLastPathComponent(),
            keyProvider: TestKeys.provider())
        #expect(try await store.read { try $0.values(String.self, "SELECT uid FROM chat") } == ["mine"])
        await store.close()
        #expect(try FolderDigest(URL(filePath: sibling)) == before)
    }

    @Test("A name may be as long as the file system allows, minus the suffixes of the upgrade's own names")
    func length() throws {
        let path = SystemPath.text(Array(folder.path("").utf8) + [UInt8](repeating: 0xe4, count: 228))
        try LegacyFile.write(path, script: "CREATE TABLE chat(uid TEXT)")
        #expect(try EncryptionUpgrade(path: path, provider: TestKeys.provider()).run().outcome == .encrypted)
    }

    @Test("Accounts in a folder whose name is not UTF-8 have their files there")
    func accounts() async throws {
        let mine = try make([0x78, 0xff], row: "mine")
        let url = try #require(URL(string: folder.url.absoluteString + "/x%FF/"))
        let accounts = AccountStores(.declaring(["chat": ["uid": "TEXT"]]), directory: url) { _ in TestKeys.provider() }
        _ = try await accounts.open("anna")
        await accounts.closeAll()
        #expect(try FileSystem.names(in: mine) == ["anna", "app.db"])
        let placed = AccountStores(.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])) { _ in
            url.appending(path: "app.db")
        } keyProvider: { _ in
            TestKeys.provider()
        }
        let store = try await placed.open("anna")
        #expect(try await store.read { try $0.values(String.self, "SELECT uid FROM chat") } == ["mine"])
        await placed.closeAll()
    }

    @Test("Two folders whose names are equal as characters have separate locks")
    func locks() throws {
        let composed = try make(Array("\u{e9}".utf8), row: "a")
        let decomposed = try make(Array("e\u{301}".utf8), row: "b")
        try UpgradeLock.withLock(DatabasePaths(composed + "/app.db"), timeout: .seconds(1)) {
            try UpgradeLock.withLock(DatabasePaths(decomposed + "/app.db"), timeout: .seconds(1)) {
                for inner in [composed, decomposed] {
                    let descriptor = inner.withSystemPath { open($0, O_RDONLY | O_CLOEXEC) }
                    defer { close(descriptor) }
                    #expect(flock(descriptor, LOCK_EX | LOCK_NB) != 0, "\(Array(inner.utf8).suffix(4))")
                }
            }
        }
    }
}
