internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// The code in the README, with other paths.
struct ReadmeExampleTests {
    struct Message: Codable, Sendable { var id: Int; var uid: String; var body: String? }

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test("The README's example encrypts, writes and reads")
    func example() async throws {
        let file = Repository.examples.appending(path: "ChatStore.plist")
        let directory = folder.url
        let keys = FileKeyProvider.file(folder.path("key"), createIfMissing: true)

        let configuration = try Configuration(contentsOf: file)
        let store = try await EncryptedStore.open(configuration, directory: directory, keyProvider: keys)
        let (uid, body) = ("anna", "It's me")
        try await store.write { db in
            try db.execute("INSERT INTO chat(uid, body) VALUES (\(uid), \(body))")  // bound, never pasted
        }
        let messages = try await store.read { db in try db.rows(Message.self, "SELECT id, uid, body FROM chat") }

        #expect(messages.map(\.id) == [1])
        #expect(messages.map(\.uid) == [uid])
        #expect(messages.map(\.body) == [body])
    }
}
