internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Which files below a folder are databases.
struct DatabaseSearchTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func make(_ name: String, key: CipherKey? = nil, settings: CipherSettings = CipherSettings()) throws {
        try LegacyFile.write(
            folder.path(name), key: key, settings: settings, script: "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    }

    private func found(_ names: DatabaseSearch.Names = .usual) throws -> [String] {
        try DatabaseSearch(in: folder.path(""), names).map { found in
            let name = found.path.split(separator: "/").last.map(String.init) ?? ""
            switch found.kind {
            case .database: return name
            case .symbolicLink: return "\(name) (symbolic)"
            case .otherName: return "\(name) (hard)"
            case .beside(let database): return "\(name) (beside \(FileSystem.split(database).name))"
            case .failure(let error): return "\(name) (\(error.code))"
            }
        }
    }

    @Test("Files with database names are found whatever their content, and other files by their content")
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

    @Test("A database with a readable header is found", .enabled(if: Engine.current.hasCompatibilityPragma))
    func plaintextHeader() throws {
        try make("header", key: TestKeys.rawWithSalt(), settings: CipherSettings(plaintextHeaderSize: 32))
        #expect(try found() == ["header"])
    }

    static let endings = [
        "-wal", "-shm", "-journal", "-plaintext", "-attempt", "-upgrade-0123456789abcdef",
        "-plaintext-0123456789abcdef", "-plaintext-2", "-plaintext-10",
    ]

    @Test("A database under a side file's name is reported as such if its main database exists", arguments: endings)
    func sideFiles(ending: String) throws {
        try make("app.db")
        for key in [nil, try TestKeys.raw()] {
            try make("app.db\(ending)", key: key)
            #expect(try found() == ["app.db", "app.db\(ending) (beside app.db)"])
            #expect(try found(.matching("*")) == ["app.db", "app.db\(ending) (beside app.db)"])
            #expect(try found(.matching("*.db")) == ["app.db"])
            try FileManager.default.removeItem(atPath: folder.path("app.db\(ending)"))
        }
    }

    @Test("A database is found under any name that does not belong to another database", arguments: endings)
    func ownNames(ending: String) throws {
        try make("my\(ending)")
        try make("our\(ending)", key: TestKeys.raw())
        try make(ending)
        try FileManager.default.createDirectory(atPath: folder.path("my"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: folder.path("our"), withDestinationPath: "my\(ending)")
        #expect(try found(.matching("*[a-z0-9]")) == [ending, "my\(ending)", "our (symbolic)", "our\(ending)"])
    }

    @Test("A log, a journal and an index are not databases, even if their database is gone", arguments: [false, true])
    func orphans(isEncrypted: Bool) throws {
        for (mode, ending) in [("WAL", "-wal"), ("DELETE", "-journal")] {
            let connection = try Connection(path: folder.path("app"), mode: .create)
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(mode)"))
            try connection.executeScript(
                "PRAGMA cache_size = 2; CREATE TABLE IF NOT EXISTS t(a); BEGIN; INSERT INTO t VALUES (randomblob(900000))"
            )
            if mode == "WAL" { try connection.execute("COMMIT") }
            for ending in [ending, "-shm"] where try FileSystem.exists(folder.path("app\(ending)")) {
                try FileManager.default.copyItem(
                    atPath: folder.path("app\(ending)"), toPath: folder.path("gone\(ending)"))
            }
            connection.close()
            try FileManager.default.removeItem(atPath: folder.path("app"))
        }
        #expect(try folder.names == ["gone-journal", "gone-shm", "gone-wal"])
        // A log whose length is a multiple of 1,024, as it is for one log in 128.
        let log = try FileHandle(forWritingTo: folder.url.appending(path: "gone-wal"))
        try log.truncate(atOffset: 512 << 10)
        try log.close()
        #expect(try found(.matching("*")) == [])
    }

    @Test("A folder that is replaced by a link during the search does not lead out of the searched folder")
    func swappedFolder() throws {
        try FileManager.default.createDirectory(atPath: folder.path("inner"), withIntermediateDirectories: false)
        let seen = try SearchedFolder(folder.path("inner")).identity
        let outside = try TemporaryFolder()
        try FileManager.default.removeItem(atPath: folder.path("inner"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("inner"), withDestinationPath: outside.url.path(percentEncoded: false))
        #expect(try storeError { try SearchedFolder(folder.path("inner"), seen: seen) } != nil)
        #expect(try storeError { try SearchedFolder(outside.path(""), seen: seen) }?.code == .busy)
    }

    @Test(
        "A found file is not read if a link leads out of the searched folder by then",
        arguments: ["inner", "inner/app.db"])
    func swappedFile(name: String) throws {
        let outside = try TemporaryFolder()
        for folder in [folder, outside] {
            try FileManager.default.createDirectory(atPath: folder.path("inner"), withIntermediateDirectories: false)
        }
        try make("inner/app.db")
        try FileManager.default.copyItem(atPath: folder.path("inner/app.db"), toPath: outside.path("inner/app.db"))
        let found = try #require(try Array(DatabaseSearch(in: folder.path(""), .usual)).first)
        let verify = { try Verification.run(at: DatabasePaths(found), provider: TestKeys.provider(), formats: []) }
        #expect(try verify().isSound)
        try FileManager.default.removeItem(atPath: folder.path(name))
        try FileManager.default.createSymbolicLink(
            atPath: folder.path(name), withDestinationPath: outside.path(name))
        #expect(try storeError { try verify() }?.code == .busy)
    }

    @Test("A pattern or a single name excludes everything else")
    func names() throws {
        for name in ["app.db", "tenant-1.db", "tenant-2.db"] { try make(name) }
        #expect(try found(.matching("tenant-*.db")) == ["tenant-1.db", "tenant-2.db"])
        #expect(try found(.equal("app.db")) == ["app.db"])
        #expect(try found(.equal("*.db")) == [])
    }

    @Test("Folders are searched in order, and links are not followed")
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

    @Test("A path to a file finds this one database, and a missing path is an error")
    func single() throws {
        try make("app")
        #expect(try Array(DatabaseSearch(in: folder.path("app"), .usual)).count == 1)
        #expect(try storeError { _ = try DatabaseSearch(in: folder.path("none"), .usual) }?.code == .missingFile)
    }
}
