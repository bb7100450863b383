internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Attacks by the owner of a folder while another user upgrades a database in it.
///
/// `Scripts/hostile-folder` attacks at every system call.
struct HostileFolderTests {
    private typealias Fixture = OpeningFixture
    private let elsewhere: TemporaryFolder
    private let secret: String

    init() throws {
        elsewhere = try TemporaryFolder()
        secret = try elsewhere.write("root's own", to: "secret", mode: 0o600)
    }

    /// Upgrades, and calls `meanwhile` once when a stage begins.
    private func upgrade(
        _ file: LegacyFile, at stage: UpgradeStage, keepBackup: Bool = false,
        _ meanwhile: @escaping @Sendable () throws -> Void
    ) throws -> EncryptionReport {
        try upgrade(path: file.path, at: stage, keepBackup: keepBackup, meanwhile)
    }

    private func upgrade(
        path: String, at stage: UpgradeStage, keepBackup: Bool = false,
        _ meanwhile: @escaping @Sendable () throws -> Void
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.keepBackup = keepBackup
        options.busyTimeout = .zero
        let once = Once()
        options.progress = { progress in
            guard progress.stage == stage, once.isFirst() else { return }
            do { try meanwhile() } catch { Issue.record(error) }
        }
        return try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options).run()
    }

    private func mode(_ path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test(
        "A link in place of the copy is not followed, and does not become the database",
        arguments: [UpgradeStage.proving, .swapping])
    func copyReplaced(stage: UpgradeStage) throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let original = try file.originalDump()
        let (folder, secret) = (file.folder, secret)
        let error = try storeError {
            try upgrade(file, at: stage) {
                let copy = try #require(try folder.names.first { $0.hasPrefix("app.db-upgrade-") })
                try FileManager.default.moveItem(atPath: folder.path(copy), toPath: folder.path("aside"))
                try FileManager.default.createSymbolicLink(atPath: folder.path(copy), withDestinationPath: secret)
            }
        }
        #expect(error?.code == .busy)
        #expect(try mode(secret) == 0o600)
        #expect(try String(contentsOfFile: secret, encoding: .utf8) == "root's own")
        #expect(try file.dump(key: nil) == original)
    }

    @Test(
        "A file put in place of the record or the backup is not written to", arguments: ["-attempt", "-plaintext"])
    func otherNames(ending: String) throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let (path, secret) = (file.path + ending, secret)
        _ = try? upgrade(file, at: .proving, keepBackup: true) {
            try? FileManager.default.removeItem(atPath: path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: secret)
        }
        #expect(try mode(secret) == 0o600)
        #expect(try String(contentsOfFile: secret, encoding: .utf8) == "root's own")
    }

    @Test("A change of the original's mode or owner during the upgrade is kept")
    func accessChanged() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file.path)
        let path = file.path
        let changesOwner = geteuid() == 0
        _ = try upgrade(file, at: .proving) {
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            if changesOwner { try #require(chown(path, 12, 34) == 0) }
        }
        #expect(try mode(file.path) == 0o600)
        if changesOwner {
            let owner = try FileManager.default.attributesOfItem(atPath: file.path)[.ownerAccountID] as? NSNumber
            #expect(owner?.intValue == 12)
        }
    }

    /// Two databases, the second of which would not be an acceptable copy of the first.
    private func files() throws -> (LegacyFile, LegacyFile) {
        (
            try Fixture.file(version: 23, journal: "DELETE"),
            try Fixture.file(version: 23, journal: "DELETE", extra: "INSERT INTO t(a) VALUES ('second folder');")
        )
    }

    @Test(
        "If a link to the folder is set to another folder during the upgrade, the first folder's database is upgraded")
    func folderLink() throws {
        let (first, second) = try files()
        let original = try first.originalDump()
        let before = try second.digest()
        let (link, other) = (elsewhere.path("folder"), second.folder.path(""))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: first.folder.path(""))
        let report = try upgrade(path: link + "/app.db", at: .proving) {
            try FileManager.default.removeItem(atPath: link)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: other)
        }
        #expect(report.outcome == .encrypted)
        #expect(try first.dump(key: TestKeys.raw()) == original)
        #expect(try first.folder.names == ["app.db"])
        #expect(try second.digest() == before)
    }

    @Test("If another folder gets the folder's name during the upgrade, neither folder's database is changed")
    func folderReplaced() throws {
        let (first, second) = try files()
        let original = try first.originalDump()
        let before = try second.digest()
        let (place, other, aside) = (first.folder.path(""), second.folder.path(""), elsewhere.path("aside"))
        let error = try storeError {
            try upgrade(first, at: .proving) {
                try FileManager.default.moveItem(atPath: place, toPath: aside)
                try FileManager.default.moveItem(atPath: other, toPath: place)
            }
        }
        #expect(error?.code == .busy)
        #expect(try first.digest() == before)
        #expect(try LegacyFile(copying: aside + "/app.db").dump(key: nil) == original)
    }

    #if os(Linux)
        @Test("A change of the original's extended attributes during the upgrade is kept")
        func attributesChanged() throws {
            let file = try Fixture.file(version: 23, journal: "DELETE")
            let path = file.path
            let handle = try FileHandle(forUpdating: URL(filePath: path))
            // Not every file system of a test machine supports them.
            for name in ["user.changed", "user.removed"] {
                guard cs_fsetxattr(handle.fileDescriptor, name, [1] as [UInt8], 1) == 0 else { return }
            }
            try handle.close()
            let report = try upgrade(file, at: .proving) {
                // The file is not opened, because closing it would end this process's locks on it.
                for (name, value) in [("user.changed", 2), ("user.added", 3)] as [(String, UInt8)] {
                    try #require(setxattr(path, name, [value], 1, 0) == 0)
                }
                try #require(removexattr(path, "user.removed") == 0)
            }
            #expect(report.outcome == .encrypted && report.warnings.besidesLeases == [])
            func value(_ name: String) -> UInt8? {
                var value: [UInt8] = [0]
                return cs_getxattr(path, name, &value, 1) == 1 ? value[0] : nil
            }
            #expect(value("user.changed") == 2)
            #expect(value("user.added") == 3)
            #expect(value("user.removed") == nil)
        }

        /// An access control list that lets the user 4242 read, in the kernel's format.
        ///
        /// Source: linux/posix_acl_xattr.h.
        private static let list: [UInt8] = {
            let nobody: [UInt8] = [255, 255, 255, 255]
            var list: [UInt8] = [2, 0, 0, 0]
            list += [1, 0, 7, 0] + nobody
            list += [2, 0, 4, 0, 0x92, 0x10, 0, 0]
            list += [4, 0, 0, 0] + nobody
            list += [16, 0, 4, 0] + nobody
            list += [32, 0, 0, 0] + nobody
            return list
        }()

        @Test("An access control list inherited from the folder is dropped if the original has none")
        func inheritedAccess() throws {
            let file = try Fixture.file(version: 23, journal: "DELETE")
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
            let folder = open(file.folder.path(""), O_RDONLY | O_DIRECTORY)
            defer { close(folder) }
            // Not every file system of a test machine supports them.
            guard cs_fsetxattr(folder, "system.posix_acl_default", Self.list, Self.list.count) == 0 else { return }
            #expect(try upgrade(file, at: .proving) {}.outcome == .encrypted)
            #expect(cs_getxattr(file.path, "system.posix_acl_access", nil, 0) < 0)
            #expect(try mode(file.path) == 0o640)
        }

        @Test("An extended attribute whose name is not UTF-8 is kept")
        func attributeName() throws {
            let file = try Fixture.file(version: 23, journal: "DELETE")
            let name = Array("user.".utf8).map { CChar(bitPattern: $0) } + [-1, -48, 0]
            let handle = try FileHandle(forUpdating: URL(filePath: file.path))
            guard cs_fsetxattr(handle.fileDescriptor, name, [7], 1) == 0 else { return }
            try handle.close()
            #expect(try upgrade(file, at: .proving) {}.warnings.besidesLeases == [])
            var value: [UInt8] = [0]
            #expect(cs_getxattr(file.path, name, &value, 1) == 1)
            #expect(value == [7])
        }
    #endif

    @Test("Root does not follow a link created by neither root nor the file's owner", .enabled(if: geteuid() == 0))
    func foreignLink() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let link = elsewhere.path("app.db")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.path)
        try #require(lchown(link, 12, 34) == 0)
        let before = try file.digest()
        let error = try storeError { try EncryptionUpgrade(path: link, provider: TestKeys.provider()).run() }
        #expect(error?.code == .permission)
        #expect(try file.digest() == before)
        try #require(chown(file.path, 12, 34) == 0)
        #expect(try EncryptionUpgrade(path: link, provider: TestKeys.provider()).run().outcome == .encrypted)
    }

    @Test("A transaction across two databases removes its own journals, although no others may be removed")
    func ownSuperJournal() throws {
        let fixture = try Fixture.file(version: 23, journal: "DELETE")
        let other = try Fixture.file(version: 7, journal: "DELETE")
        let connection = try Connection(
            path: fixture.path, mode: .readWrite, through: FileLayer(guarding: fixture.path))
        try connection.execute("ATTACH \(other.path) AS other")
        try connection.transaction {
            try connection.execute("CREATE TABLE main.both(a)")
            try connection.execute("CREATE TABLE other.both(a)")
        }
        connection.close()
        for file in [fixture, other] {
            #expect(try file.folder.names == ["app.db"])
            #expect(try file.read(key: nil) { try $0.value(Int.self, "SELECT count(*) FROM both") } == 0)
        }
    }

    @Test("A database that replaces one in WAL mode keeps its own journal mode")
    func replacedByAnother() throws {
        let file = try Fixture.file(version: 23, journal: "WAL")
        let other = try Fixture.file(version: 7, journal: "DELETE")
        let wanted = try Data(contentsOf: URL(filePath: other.path))
        let error = try storeError {
            try upgrade(file, at: .proving) { try #require(rename(other.path, file.path) == 0) }
        }
        #expect(error?.code == .busy)
        #expect(try Data(contentsOf: URL(filePath: file.path)) == wanted)
        #expect(try file.folder.names == ["app.db"])
    }

    @Test("A hot journal cannot cause the removal of another file, whenever it was put there")
    func superJournal() throws {
        let fixture = try Fixture.file(version: 23, journal: "DELETE")
        let layer = try FileLayer(guarding: fixture.path)
        let connection = try Connection(path: fixture.path, mode: .readWrite, through: layer)
        defer { connection.close() }
        try connection.proveReadable()
        let other = try fixture.folder.write("another file", to: "other")
        // SQLite's pager calls this for the name in a journal.
        #expect(layer.remove(other))
        #expect(FileManager.default.fileExists(atPath: other))
        let journal = try fixture.folder.write("", to: "app.db-journal")
        #expect(layer.remove(journal))
        #expect(!FileManager.default.fileExists(atPath: journal))
    }
}

/// Distinguishes the first call from later ones.
private final class Once: Sendable {
    private let lock = Lock()
    // Unchecked, but safe: it is used only under `lock`.
    private nonisolated(unsafe) var isDone = false

    func isFirst() -> Bool {
        lock.withLock {
            defer { isDone = true }
            return !isDone
        }
    }
}
