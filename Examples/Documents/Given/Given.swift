public import CipherStore
public import Foundation

/// The values that the documents' code blocks may use without declaring them.
public struct Given: Sendable {
    /// A new folder that contains only the files below.
    public let folder: URL
    /// A plaintext database with the table `chat`.
    public let file: URL
    /// Databases of older versions.
    public let fixtures: [URL]
    /// The path of the key file.
    public let keyPath: String
    /// The key, in a file that is created when it is first used.
    public let keys: FileKeyProvider
    /// Describes the database of the store.
    public let configuration: Configuration
    /// A store with the table `chat`, in the file `chat.db`.
    public let store: EncryptedStore

    /// Creates the folder of a block.
    ///
    /// - Parameters:
    ///   - name: The name of the block's folder.
    ///   - legacy: The plaintext database, of which `file` is a copy.
    public init(_ name: String, in place: URL, legacy: URL) async throws {
        let files = FileManager.default
        folder = place.appending(path: name)
        let fixture = folder.appending(path: "fixtures/version-1.db")
        fixtures = [fixture]
        if files.fileExists(atPath: folder.path) { try files.removeItem(at: folder) }
        try files.createDirectory(at: fixture.deletingLastPathComponent(), withIntermediateDirectories: true)
        file = folder.appending(path: "app.db")
        try files.copyItem(at: legacy, to: file)
        try files.copyItem(at: legacy, to: fixture)
        keyPath = folder.appending(path: "key").path
        keys = .file(keyPath, createIfMissing: true)
        configuration = Configuration(
            databaseName: "chat.db", version: 3,
            schema: .tables([
                DeclaredTable(
                    name: "chat",
                    columns: [
                        .init(name: "id", definition: "INTEGER PRIMARY KEY"),
                        .init(name: "uid", definition: "TEXT"),
                        .init(name: "body", definition: "TEXT"),
                        .init(name: "searchText", definition: "TEXT"),
                    ])
            ]))
        store = try await EncryptedStore.open(configuration, directory: folder, keyProvider: keys)
        try await store.write { db in
            try db.execute("INSERT INTO chat(uid, body) VALUES ('anna', 'It''s me'), ('ben', 'Good morning')")
        }
    }
}
