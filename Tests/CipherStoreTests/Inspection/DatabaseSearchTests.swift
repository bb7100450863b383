import CipherSQLite
import Foundation
import TestSupport
import Testing

@testable import CipherStore

/// Which files below a folder are databases.
struct DatabaseSearchTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ name: String, key: CipherKey? = nil, settings: CipherSettings = CipherSettings()) throws {
        let connection = try Connection(path: folder.path(name), mode: .create)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: settings) }
        try connection.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    }

    private func found(_ names: DatabaseSearch.Names = .usual) throws -> [String] {
        try DatabaseSearch.run(in: folder.path(""), names).map { found in
            let name = found.path.split(separator: "/").last.map(String.init) ?? ""
            switch found.kind {
            case .database: return name
            case .symbolicLink: return "\(name) (symbolic)"
            case .otherName: return "\(name) (hard)"
            case .failure(let error): return "\(name) (\(error.code))"
            }
        }
    }

    @Test("Names that databases have count whatever the content, other names by the content")
    func kinds() throws {
        try make("plain")
        try make("encrypted", key: TestKeys.raw())
        try make("format-1", key: TestKeys.raw(), settings: CipherSettings(compatibility: 1))
        try folder.write("Dear diary\n", to: "note.txt")
        try folder.write("Dear diary\n", to: "cut.SQLite")
        try folder.write("", to: "empty")
        try folder.write("", to: "empty.db")
        try folder.write(String(repeating: "Dear diary. ", count: 1024), to: "text")
        #expect(try found() == ["cut.SQLite", "empty.db", "encrypted", "format-1", "plain"])
    }

    @Test("A readable header is known", .enabled(if: Engine.current.hasCompatibilityPragma))
    func plaintextHeader() throws {
        try make("header", key: TestKeys.rawWithSalt(), settings: CipherSettings(plaintextHeaderSize: 32))
        #expect(try found() == ["header"])
    }

    @Test(
        "What lies beside a database is none, even where it holds one",
        arguments: [
            "-wal", "-shm", "-journal", "-upgrade", "-upgrade-journal", "-plaintext", "-plaintext-new", "-attempt",
            "-attempt-new",
        ])
    func sideFiles(ending: String) throws {
        try make("app.db")
        try make("app.db\(ending)")
        #expect(try found() == ["app.db"])
        #expect(try found(.matching("*")) == ["app.db"])
    }

    @Test("A pattern or one name leaves out everything else")
    func names() throws {
        for name in ["app.db", "tenant-1.db", "tenant-2.db"] { try make(name) }
        #expect(try found(.matching("tenant-*.db")) == ["tenant-1.db", "tenant-2.db"])
        #expect(try found(.equal("app.db")) == ["app.db"])
        #expect(try found(.equal("*.db")) == [])
    }

    @Test("Folders are entered in order, links are not followed")
    func links() throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: folder.path("b"), withIntermediateDirectories: false)
        for name in ["a.db", "b/inner.db", "c.db"] { try make(name) }
        try manager.createSymbolicLink(atPath: folder.path("b/loop"), withDestinationPath: "..")
        try manager.createSymbolicLink(atPath: folder.path("b/nowhere.db"), withDestinationPath: "none")
        try manager.createSymbolicLink(atPath: folder.path("link.db"), withDestinationPath: "a.db")
        try manager.linkItem(atPath: folder.path("a.db"), toPath: folder.path("b/other.db"))
        #expect(try found() == ["a.db", "c.db", "link.db (symbolic)", "inner.db", "other.db (hard)"])
    }

    @Test("A file is taken for the one database, and nothing is an error")
    func single() throws {
        try make("app")
        #expect(try DatabaseSearch.run(in: folder.path("app"), .usual).count == 1)
        #expect(try storeError { try DatabaseSearch.run(in: folder.path("none"), .usual) }?.code == .missingFile)
    }
}
