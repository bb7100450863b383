internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// New key files.
struct KeyFileTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `A new key file holds one line that only its owner can read`() throws {
        let path = folder.path("key")
        let key = try CipherKey.random()
        #expect(try KeyFile.create(path, key: key))
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.wholeMatch(of: /x'[0-9a-f]{64}'\n/) != nil)
        #expect(try FileKeyProvider(path: path).key(for: .existing, database: "app.db") == key)
        #expect(try folder.names == ["key"])
    }

    @Test func `A file that is there already stays as it is`() throws {
        let path = try folder.write("mine", to: "key", mode: 0o644)
        #expect(try KeyFile.create(path, key: .random()) == false)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o644)
        #expect(try folder.names == ["key"])
    }

    @Test func `A folder is not replaced and not filled`() throws {
        try FileManager.default.createDirectory(atPath: folder.path("key"), withIntermediateDirectories: false)
        #expect(try KeyFile.create(folder.path("key"), key: .random()) == false)
        #expect(try folder.names == ["key"])
    }

    @Test("A missing folder and a file in place of the folder are refused", arguments: ["missing/key", "file/key"])
    func noFolder(name: String) throws {
        try folder.write("", to: "file")
        let error = #expect(throws: StoreError.self) { try KeyFile.create(folder.path(name), key: .random()) }
        #expect(error?.code == .missingFile)
        #expect(error?.path == folder.path(name))
        #expect(try folder.names == ["file"])
    }

    @Test func `A name that the file system refuses leaves nothing behind`() throws {
        let path = folder.path(String(repeating: "k", count: 300))
        let error = #expect(throws: StoreError.self) { try KeyFile.create(path, key: .random()) }
        #expect(error?.code == .nameTaken)
        #expect(try folder.names.isEmpty)
    }
}
