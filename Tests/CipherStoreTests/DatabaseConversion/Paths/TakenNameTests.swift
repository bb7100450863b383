internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Names around a database that are already taken by something else.
struct TakenNameTests {
    private typealias Fixture = OpeningFixture

    private static let endings = [
        "-wal", "-shm", "-journal", "-attempt", "-plaintext", "-upgrade", "-upgrade-journal", "-plaintext-new",
        "-attempt-new",
    ]

    private func key(_ path: String) throws -> FileKeyProvider {
        _ = try KeyFile.create(path, key: TestKeys.raw())
        return FileKeyProvider(path: path)
    }

    /// Runs the operation.
    ///
    /// The key must exist afterwards. If the run was refused, everything must be unchanged.
    private func keepsKey(_ file: LegacyFile, _ ending: String, _ run: (any KeyProvider) throws -> Void) throws {
        let path = file.path + ending
        let provider = try key(path)
        let content = try Data(contentsOf: URL(filePath: path))
        let before = try FolderDigest(file.folder.url)
        do {
            try run(provider)
        } catch let error as StoreError {
            #expect(error.code == .nameTaken)
            #expect(try FolderDigest(file.folder.url) == before)
        }
        #expect(try Data(contentsOf: URL(filePath: path)) == content, "\(ending)")
    }

    @Test(
        "A key file with a sidecar's name survives an encryption, a shadow proof and a launch",
        arguments: endings)
    func keyOfPlaintext(ending: String) throws {
        for journal in ["DELETE", "WAL"] {
            try keepsKey(Fixture.file(version: 23, journal: journal), ending) { provider in
                _ = try EncryptionUpgrade(path: (provider as? FileKeyProvider)?.database ?? "", provider: provider)
                    .run()
            }
            try keepsKey(Fixture.file(version: 23, journal: journal), ending) { provider in
                _ = try EncryptionUpgrade(path: (provider as? FileKeyProvider)?.database ?? "", provider: provider)
                    .shadow()
            }
            for isEnabled in [true, false] {
                let file = try Fixture.file(version: 23, journal: journal)
                try keepsKey(file, ending) { provider in
                    let configuration = Fixture.configuration(.init(isEnabled: isEnabled, sinceVersion: 24))
                    _ = try Fixture.open(file.folder, configuration, provider: provider)
                }
            }
        }
    }

    @Test("A key file with a sidecar's name survives a decryption and a change of the key", arguments: endings)
    func keyOfEncrypted(ending: String) throws {
        try keepsKey(Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: "DELETE"), ending) { provider in
            _ = try Decryption(
                path: (provider as? FileKeyProvider)?.database ?? "", provider: provider, formats: [CipherSettings()],
                options: .init()
            ).run()
        }
        try keepsKey(Fixture.file(version: 23, encryptedWith: TestKeys.raw(8), journal: "DELETE"), ending) { provider in
            _ = try Rekeying(
                at: DatabasePaths((provider as? FileKeyProvider)?.database ?? ""),
                oldKey: TestKeys.provider { try TestKeys.raw(8) }, newKey: provider, formats: [CipherSettings()],
                newSettings: CipherSettings(), options: .init()
            ).run()
        }
    }

    /// Something other than a regular file.
    enum Obstacle: CaseIterable {
        case fifo, folder, link, linkToNothing, socket

        func put(at path: String) throws {
            switch self {
            case .fifo: try #require(mkfifo(path, 0o600) == 0)
            case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/passwd")
            case .linkToNothing: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "none")
            case .socket: try #require(mknod(path, S_IFSOCK | 0o600, 0) == 0)
            }
        }
    }

    @Test(
        "A file that SQLite did not write is not mistaken for its log, index or journal, and stays",
        arguments: ["-wal", "-shm", "-journal"],
        [
            Array("SQLite format 3\0 and more".utf8), Array("hello".utf8), [0xff],
            (0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) },
        ])
    func foreignSidecar(ending: String, content: [UInt8]) throws {
        for journal in ["DELETE", "WAL"] where journal == "DELETE" || ending == "-journal" {
            let file = try OpeningFixture.file(version: 23, journal: journal)
            try Data(content).write(to: URL(filePath: file.path + ending))
            let before = try FolderDigest(file.folder.url, ignoring: [])
            let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
            for run in [upgrade.run, { try upgrade.shadow() }] {
                let error = try storeError { try run() }
                #expect(error?.code == .nameTaken && error?.path == file.path + ending)
                #expect(try FolderDigest(file.folder.url, ignoring: []) == before)
            }
        }
    }

    @Test("A file without permissions under the record's name is a record only if it is no larger than one")
    func largerThanARecord() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let name = try file.folder.write(String(repeating: "x", count: 2_100), to: "app.db-attempt")
        try #require(chmod(name, 0) == 0)
        let before = try FolderDigest(file.folder.url, ignoring: [])
        let error = try storeError { try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run() }
        #expect(error?.code == .nameTaken && error?.path == name)
        #expect(try FolderDigest(file.folder.url, ignoring: []) == before)
    }

    @Test(
        "A path that is not a regular file never blocks a run, and is refused by name or left alone",
        .timeLimit(.minutes(20)),
        arguments: Obstacle.allCases, endings)
    func obstacle(_ obstacle: Obstacle, ending: String) throws {
        for isEncrypted in [true, false] {
            let file = try Fixture.file(
                version: 23, encryptedWith: isEncrypted ? TestKeys.raw() : nil, journal: "DELETE")
            try obstacle.put(at: file.path + ending)
            let before = try file.digest()
            var options = ConversionOptions()
            options.keepBackup = true
            options.busyTimeout = .zero
            do {
                if isEncrypted {
                    _ = try Decryption(
                        path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
                    ).run()
                } else {
                    _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
                }
            } catch let error as StoreError {
                #expect([.notAFile, .nameTaken].contains(error.code), "\(error)")
                #expect(error.path == file.path + ending)
                #expect(try file.digest() == before)
            }
            #expect(try FileSystem.status(file.path + ending, followLinks: false)?.isRegular == false)
        }
    }

    @Test(
        "A name too long for the names beside it is refused before anything is done", arguments: [228, 229, 255])
    func longName(length: Int) throws {
        let name = String(repeating: "n", count: length)
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let path = file.folder.path(name)
        try FileManager.default.moveItem(atPath: file.path, toPath: path)
        let error = try storeError { try EncryptionUpgrade(path: path, provider: TestKeys.provider()).run() }
        if length + DatabasePaths.longestAddition <= 255 {
            #expect(error == nil)
        } else {
            #expect(error?.code == .nameTaken)
            #expect(error?.detail.contains("too long") == true)
            #expect(try file.folder.names == [name])
        }
    }

    @Test("The mount table shows a single file that is mounted, whatever its name")
    func mountPoints() {
        let table = """
            22 1 0:20 / / rw,relatime shared:1 - overlay overlay rw
            30 22 8:1 /x /data/my\\040app.db rw shared:2 - ext4 /dev/sda1 rw
            31 22 8:1 /y /data/back\\134slash rw - ext4 /dev/sda1 rw
            """
        let points = MountPoint.points(Array(table.utf8)).map { String(decoding: $0, as: UTF8.self) }
        #expect(points == ["/", "/data/my app.db", "/data/back\\slash"])
    }
}

extension FileKeyProvider {
    /// The database in the same folder as the key.
    fileprivate var database: String { URL(filePath: path).deletingLastPathComponent().appending(path: "app.db").path }
}
