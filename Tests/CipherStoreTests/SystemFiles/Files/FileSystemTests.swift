internal import CipherErrors
import CipherPlatform
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Names and the operations of the file system on them.
struct FileSystemTests {
    private let folder: TemporaryFolder
    /// The folder without symbolic links.
    private let root: String

    init() throws {
        folder = try TemporaryFolder()
        root = try FileSystem.resolve(folder.path("."))
    }

    private func link(_ name: String, to target: String) throws -> String {
        try FileManager.default.createSymbolicLink(atPath: folder.path(name), withDestinationPath: target)
        return folder.path(name)
    }

    private func expectRefusal(
        _ code: StoreError.Code, of path: String, _ body: () throws -> some Any,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try FolderDigest(folder.url)
        let error = try storeError(from: body)
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(error?.path == path, sourceLocation: sourceLocation)
        #expect(try FolderDigest(folder.url) == before, sourceLocation: sourceLocation)
    }

    // MARK: Existing files

    @Test("A file, a folder and a link are distinguished, and so are a link and its target")
    func kinds() throws {
        let file = try folder.write("12345", to: "file", mode: 0o640)
        let link = try link("link", to: "file")
        let status = try #require(try FileSystem.status(file))
        #expect(status.isRegular && !status.isDirectory && !status.isSymbolicLink)
        #expect(status.size == 5)
        #expect(status.mode == 0o640)
        #expect(status.owner == geteuid())
        #expect(try FileSystem.status(folder.path(""))?.isDirectory == true)
        #expect(try FileSystem.status(link)?.identity == status.identity)
        let itself = try #require(try FileSystem.status(link, followLinks: false))
        #expect(itself.isSymbolicLink && !itself.isRegular)
        #expect(itself.identity != status.identity)
    }

    @Test("Two names of one file have the same identity, and the file's link count is right")
    func hardLinks() throws {
        let file = try folder.write("a", to: "file")
        let other = try folder.write("a", to: "other")
        let second = folder.path("second")
        try FileManager.default.linkItem(atPath: file, toPath: second)
        #expect(try FileSystem.status(second)?.identity == FileSystem.status(file)?.identity)
        #expect(try FileSystem.status(other)?.identity != FileSystem.status(file)?.identity)
        #expect(try FileSystem.status(file)?.links == 2)
        #expect(try FileSystem.status(other)?.links == 1)
    }

    @Test("A missing path has no status and causes no error", arguments: ["missing", "missing/file", "file/inside"])
    func nothing(name: String) throws {
        try folder.write("a", to: "file")
        #expect(try FileSystem.status(folder.path(name)) == nil)
        #expect(try FileSystem.size(folder.path(name)) == nil)
        #expect(try !FileSystem.exists(folder.path(name)))
        #expect(try !FileSystem.removeIfPresent(folder.path("missing")))
    }

    @Test("A dangling link exists, and its target does not")
    func danglingLink() throws {
        let link = try link("link", to: "missing")
        #expect(try FileSystem.exists(link))
        #expect(try FileSystem.status(link) == nil)
        #expect(try FileSystem.size(link) == nil)
    }

    // MARK: Names

    @Test("Every path to a file is resolved to the same name without links")
    func resolving() throws {
        try FileSystem.createFolder(folder.path("inner"))
        let file = try folder.write("a", to: "inner/file")
        _ = try link("way", to: "inner")
        _ = try link("link", to: "way/file")
        for way in [file, folder.path("link"), folder.path("way/file"), folder.path("inner/../way/./file")] {
            #expect(try FileSystem.resolve(way) == root + "/inner/file")
        }
        #expect(try FileSystem.resolve(folder.path("way/missing")) == root + "/inner/missing")
        #expect(try FileSystem.resolve("/missing in the root") == "/missing in the root")
    }

    @Test("Names that are not UTF-8 refer to their own files, and not to files that look alike")
    func nameBytes() throws {
        let strange = SystemPath.text(Array(folder.path("").utf8) + [0x78, 0xff])
        let alike = folder.path("x\u{FFFD}")
        try FileSystem.createFolder(strange)
        #expect(try !FileSystem.exists(alike))
        try FileSystem.createFolder(alike)
        #expect(try FileSystem.status(strange)?.identity != FileSystem.status(alike)?.identity)
        let resolved = try FileSystem.resolve(strange + "/missing")
        #expect(SystemPath.bytes(resolved) == Array(root.utf8) + [0x2f, 0x78, 0xff] + Array("/missing".utf8))
        #expect(try FileSystem.names(in: root).map(SystemPath.bytes) == [[0x78, 0xef, 0xbf, 0xbd], [0x78, 0xff]])
        try FileSystem.removeFolderIfEmpty(strange)
        #expect(try FileSystem.names(in: root) == ["x\u{FFFD}"])
    }

    @Test("Names that are equal as characters are listed separately, in the order of their bytes")
    func composedNames() throws {
        for name in ["\u{e9}", "e\u{301}"] { try FileSystem.createFolder(root + "/" + name) }
        let names = try FileSystem.names(in: root)
        // A file system may treat both names as one.
        if names.count > 1 { #expect(names.map { Array($0.utf8) } == [Array("e\u{301}".utf8), Array("\u{e9}".utf8)]) }
    }

    @Test(
        "A path is split at its last slash, byte by byte",
        arguments: [
            ("file", ".", "file"), ("/file", "/", "file"), ("a/b/file", "a/b", "file"), ("a/", "a", ""),
            ("a/\u{301}e", "a", "\u{301}e"),
        ])
    func splitting(path: String, folder: String, name: String) {
        let parts = FileSystem.split(path)
        #expect(Array(parts.folder.utf8) == Array(folder.utf8))
        #expect(Array(parts.name.utf8) == Array(name.utf8))
    }

    @Test("An invalid file name is refused, and so is a name in a missing folder")
    func noNames() throws {
        for path in ["", "a\0b", folder.path("missing/file")] {
            try expectRefusal(.missingFile, of: path) { try FileSystem.resolve(path) }
        }
    }

    @Test("A link that leads nowhere or to itself is refused, and stays")
    func badLinks() throws {
        let dangling = try link("dangling", to: "missing")
        try expectRefusal(.notAFile, of: dangling) { try FileSystem.resolve(dangling) }
        let loop = try link("loop", to: "loop")
        try expectRefusal(.notAFile, of: loop) { try FileSystem.resolve(loop) }
        #expect(try folder.names == ["dangling", "loop"])
    }

    @Test("A name too long for the file system is refused with an error about the name")
    func longName() throws {
        let path = folder.path(String(repeating: "n", count: 300))
        for body in [{ _ = try FileSystem.resolve(path) }, { try FileSystem.createFolder(path) }] {
            try expectRefusal(.nameTaken, of: path, body)
        }
    }

    @Test(
        "Root does not follow another user's link to a file that belongs to someone else", .enabled(if: geteuid() == 0))
    func foreignLink() throws {
        let file = try folder.write("a", to: "file")
        let link = try link("link", to: "file")
        try #require(lchown(link, 12, 34) == 0)
        try expectRefusal(.permission, of: link) { try FileSystem.resolve(link) }
        try #require(chown(file, 12, 34) == 0)
        #expect(try FileSystem.resolve(link) == root + "/file")
    }

    // MARK: Folders and removal

    @Test("A new folder is private to its owner, and an existing one stays unchanged")
    func newFolder() throws {
        let path = folder.path("inner")
        try FileSystem.createFolder(path)
        #expect(try FileSystem.status(path)?.mode == 0o700)
        try folder.write("a", to: "inner/file")
        try #require(chmod(path, 0o755) == 0)
        try FileSystem.createFolder(path)
        #expect(try FileSystem.status(path)?.mode == 0o755)
        #expect(try FileSystem.names(in: path) == ["file"])
        let deep = folder.path("missing/inner")
        try expectRefusal(.missingFile, of: deep) { try FileSystem.createFolder(deep) }
    }

    @Test("A folder is removed only if it is empty")
    func removingFolders() throws {
        let path = folder.path("inner")
        try FileSystem.createFolder(path)
        try folder.write("a", to: "inner/file")
        let before = try FolderDigest(URL(filePath: path))
        try FileSystem.removeFolderIfEmpty(path)
        #expect(try FolderDigest(URL(filePath: path)) == before)
        #expect(try FileSystem.removeIfPresent(path + "/file"))
        try FileSystem.removeFolderIfEmpty(path)
        #expect(try !FileSystem.exists(path))
        #expect(throws: Never.self) { try FileSystem.removeFolderIfEmpty(path) }
    }

    @Test("Removing a link leaves its target, and a folder is not removed")
    func removing() throws {
        let file = try folder.write("a", to: "file")
        let link = try link("link", to: file)
        #expect(try FileSystem.removeIfPresent(link))
        #expect(try folder.names == ["file"])
        try FileSystem.createFolder(folder.path("inner"))
        let inner = folder.path("inner")
        let before = try FolderDigest(folder.url)
        #expect(try storeError { try FileSystem.removeIfPresent(inner) } != nil)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("The names in a folder can be made durable, and those in a missing folder cannot be listed")
    func folders() throws {
        #expect(throws: Never.self) { try FileSystem.syncFolder(of: folder.path("whatever")) }
        let missing = folder.path("missing")
        try expectRefusal(.missingFile, of: missing) { try FileSystem.names(in: missing) }
        try expectRefusal(.missingFile, of: missing) { try FileSystem.freeSpace(missing) }
        #expect(try FileSystem.freeSpace(root).disk >= 0)
    }

    // MARK: Permissions

    #if !os(iOS) && !os(tvOS) && !os(watchOS)
        /// Gives this process a user's restricted permissions while `body` runs.
        static func unprivileged(_ body: () throws -> Void) throws {
            guard geteuid() == 0 else { return try body() }
            let nobody: uid_t = 65534
            // The saved user stays root.
            try #require(setreuid(nobody, 0) == 0 && seteuid(nobody) == 0)
            defer { precondition(seteuid(0) == 0 && setreuid(0, 0) == 0) }
            try body()
        }

        @Test("Denied permissions are reported in advance and refused when tried, and nothing is changed")
        func permissions() async {
            // Runs in a separate process, because the user ID belongs to the whole process.
            await #expect(processExitsWith: .success) {
                let tests = try FileSystemTests()
                let folder = tests.folder
                try FileSystem.createFolder(folder.path("closed"))
                let (secret, open) = (folder.path("secret"), try folder.write("a", to: "open", mode: 0o644))
                try folder.write("a", to: "secret", mode: 0o000)
                let closed = folder.path("closed/file")
                try #require(chmod(folder.path("closed"), 0o000) == 0 && chmod(folder.path(""), 0o555) == 0)
                try #require(chmod(open, 0o444) == 0)
                let before = try FolderDigest(folder.url)
                try Self.unprivileged {
                    #expect(FileSystem.canRead(open) && !FileSystem.canWrite(open))
                    #expect(!FileSystem.canRead(secret) && !FileSystem.canWrite(secret))
                    #expect(!FileSystem.canWriteInFolder(tests.root) && !FileSystem.canRead(closed))
                    // Access to a missing file is not denied.
                    #expect(FileSystem.canRead(folder.path("missing")))
                    let refused: [(String, () throws -> Any)] = [
                        (closed, { try FileSystem.exists(closed) }), (closed, { try FileSystem.resolve(closed) }),
                        (folder.path("closed"), { try FileSystem.names(in: folder.path("closed")) }),
                        (folder.path("new"), { try FileSystem.createFolder(folder.path("new")) }),
                        (open, { try FileSystem.removeIfPresent(open) }),
                    ]
                    for (path, body) in refused {
                        let error = try storeError(from: body)
                        #expect(error?.code == .permission)
                        #expect(error?.path == path)
                    }
                }
                #expect(try geteuid() != 0 || FolderDigest(folder.url) == before)
                try #require(chmod(folder.path(""), 0o700) == 0 && chmod(folder.path("closed"), 0o700) == 0)
            }
        }
    #endif

    @Test("A new file can be given the current user and group, and only root can give it another owner")
    func ownership() throws {
        let mine = try #require(try FileSystem.status(folder.write("a", to: "mine")))
        let around = try #require(try FileSystem.status(root))
        #expect(FileSystem.canTakeOwner(mine))
        #expect(FileSystem.canTakeGroup(mine, in: around))
        let root = try #require(try FileSystem.status("/"))
        #expect(FileSystem.canTakeOwner(root) == (geteuid() == 0))
    }

    @Test(
        "The advice of an error depends on the system's reason",
        arguments: [
            (ENOENT, StoreError.Code.missingFile), (ENOTDIR, .missingFile), (EACCES, .permission), (EPERM, .permission),
            (EROFS, .permission), (ENAMETOOLONG, .nameTaken), (ENOSPC, .noSpace), (EDQUOT, .noSpace),
            (EFBIG, .noSpace), (EIO, .inputOutput), (ELOOP, .notAFile),
        ])
    func reasons(reason: Int32, code: StoreError.Code) {
        let error = FileSystem.failure("be read", "/a/b", reason)
        #expect(error.code == code)
        #expect(error.path == "/a/b")
        #expect(!error.advice.isEmpty)
    }
}
