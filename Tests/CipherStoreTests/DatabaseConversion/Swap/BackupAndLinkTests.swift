internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Backups, and what a file has besides its bytes.
struct BackupAndLinkTests {
    private typealias Fixture = OpeningFixture

    private func upgrade(_ path: String, keepBackup: Bool = false) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.keepBackup = keepBackup
        return try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options).run()
    }

    @Test("A requested backup is the plaintext database with all its rows and its mode")
    func backup() throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
        let report = try upgrade(file.path, keepBackup: true)
        #expect(report.backup == file.path + "-plaintext")
        let kept = try LegacyFile(copying: file.path + "-plaintext")
        #expect(try Fixture.rows(kept, key: nil) == Fixture.allRows)
        #expect(try mode(file.path + "-plaintext") == 0o640)
        #expect(try file.folder.names == ["app.db", "app.db-plaintext"])
    }

    /// What may already have the first backup's name.
    enum Stranger: CaseIterable { case database, text, link, linkToNothing, folder, unreadable }

    @Test(
        "A foreign file with the backup's name stays, and the backup gets the next name",
        arguments:
            Stranger.allCases)
    func otherBackup(stranger: Stranger) throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        let bytes = try Data(contentsOf: URL(filePath: file.path))
        let name = file.path + "-plaintext"
        switch stranger {
        case .database:
            let other = try Fixture.file(version: 22, journal: "DELETE")
            try FileManager.default.copyItem(atPath: other.path, toPath: name)
        case .text: try file.folder.write("something else", to: "app.db-plaintext")
        case .link:
            // The linked file has the right content, but a link is not a backup, because its target may be deleted.
            let elsewhere = try file.folder.write("", to: "elsewhere")
            try bytes.write(to: URL(filePath: elsewhere))
            try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: elsewhere)
        case .linkToNothing: try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: "none")
        case .folder: try FileManager.default.createDirectory(atPath: name, withIntermediateDirectories: false)
        case .unreadable:
            try Data(repeating: 1, count: bytes.count).write(to: URL(filePath: name))
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: name)
        }
        let before = try FileSystem.status(name, followLinks: false)
        let report = try upgrade(file.path, keepBackup: true)
        #expect(report.backup == name + "-2")
        #expect(
            report.warnings.contains { $0.hasPrefix("the earlier backup app.db-plaintext is kept") }
                == before?.isRegular)
        #expect(try Data(contentsOf: URL(filePath: name + "-2")) == bytes)
        #expect(try FileSystem.status(name, followLinks: false)?.identity == before?.identity)
        #expect(try FileSystem.status(name, followLinks: false)?.size == before?.size)
    }

    @Test("A database that changed after a killed run had made a backup gets another backup")
    func changedAfterBackup() throws {
        let file = try Fixture.file(version: 23, journal: "DELETE")
        try FileManager.default.copyItem(atPath: file.path, toPath: file.path + "-plaintext")
        let connection = try Connection(path: file.path, mode: .readWrite)
        try connection.execute("INSERT INTO t(a) VALUES ('after')")
        connection.close()
        #expect(try upgrade(file.path, keepBackup: true).backup == file.path + "-plaintext-2")
        let first = try LegacyFile(copying: file.path + "-plaintext")
        #expect(try Fixture.rows(first, key: nil) == Fixture.allRows)
        let second = try LegacyFile(copying: file.path + "-plaintext-2")
        #expect(try Fixture.rows(second, key: nil) == Fixture.allRows + ["78 after"])
    }

    @Test("The backup made by a killed run is recognized", arguments: ["DELETE", "WAL"])
    func sameBackup(journal: String) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        // As the run left it: in rollback mode, with its log merged.
        let copy = try LegacyFile(copying: file.path)
        _ = try copy.read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode = DELETE") }
        try FileManager.default.copyItem(atPath: copy.path, toPath: file.path + "-plaintext")
        #expect(try upgrade(file.path, keepBackup: true).outcome == .encrypted)
        let kept = try LegacyFile(copying: file.path + "-plaintext")
        #expect(try Fixture.rows(kept, key: nil) == Fixture.allRows)
    }

    @Test("Another hard link is reported, and the old file is not overwritten under it")
    func hardLink() throws {
        let file = try Fixture.file(version: 23)
        let elsewhere = try TemporaryFolder()
        try FileManager.default.linkItem(atPath: file.path, toPath: elsewhere.path("other.db"))
        try FileManager.default.linkItem(atPath: file.path, toPath: elsewhere.path("third.db"))
        let report = try upgrade(file.path)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(report.warnings.besidesLeases.first?.contains("2 other hard links") == true, "\(report.warnings)")
        #expect(try !file.startsAsPlaintext)
        let other = try LegacyFile(copying: elsewhere.path("other.db"))
        #expect(try Fixture.rows(other, key: nil) == Fixture.allRows)
    }

    @Test(
        "A connection that is writing, or has the file open in WAL mode, makes the upgrade report busy",
        arguments: ["DELETE", "WAL"])
    func busy(journal: String) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        let original = try file.originalDump()
        do {
            let other = try Connection(path: file.path, mode: .readWrite)
            defer { other.close() }
            try other.execute("BEGIN IMMEDIATE")
            _ = try other.value(Int.self, "SELECT count(*) FROM t")
            var options = ConversionOptions()
            options.busyTimeout = .zero
            let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
            #expect(try storeError { try upgrade.run() }?.code == .busy)
        }
        #expect(try file.dump(key: nil) == original)
        #expect(try file.folder.names.filter { $0 != "app.db-wal" && $0 != "app.db-shm" } == ["app.db"])
        #expect(try upgrade(file.path).outcome == .encrypted)
        #expect(try file.dump(key: TestKeys.raw()) == original)
    }

    @Test("A symbolic link is kept, and its target is encrypted")
    func symbolicLink() throws {
        let file = try Fixture.file(version: 23)
        let elsewhere = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(atPath: elsewhere.path("app.db"), withDestinationPath: file.path)
        #expect(try upgrade(elsewhere.path("app.db")).outcome == .encrypted)
        let type = try FileManager.default.attributesOfItem(atPath: elsewhere.path("app.db"))[.type]
        #expect(type as? FileAttributeType == .typeSymbolicLink)
        #expect(try !file.startsAsPlaintext)
        #expect(try elsewhere.names == ["app.db"])
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("Every bit of the mode is kept", arguments: [0o600, 0o644, 0o660, 0o400 | 0o200])
    func mode(bits: Int) throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.setAttributes([.posixPermissions: bits], ofItemAtPath: file.path)
        #expect(try upgrade(file.path).outcome == .encrypted)
        #expect(try mode(file.path) == bits)
    }

    @Test("The owner and group are kept", .enabled(if: NSUserName() == "root"))
    func owner() throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.setAttributes([.ownerAccountID: 12, .groupOwnerAccountID: 34], ofItemAtPath: file.path)
        #expect(try upgrade(file.path).outcome == .encrypted)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == 12)
        #expect((attributes[.groupOwnerAccountID] as? NSNumber)?.intValue == 34)
    }

    @Test("Extended attributes are kept")
    func extendedAttributes() throws {
        let file = try Fixture.file(version: 23)
        let value = Array("phone".utf8)
        // Not every file system of a test machine supports them.
        let handle = try FileHandle(forUpdating: URL(filePath: file.path))
        guard cs_fsetxattr(handle.fileDescriptor, "user.origin", value, value.count) == 0 else { return }
        try handle.close()
        #expect(try upgrade(file.path).warnings.besidesLeases == [])
        var kept = [UInt8](repeating: 0, count: 64)
        let count = cs_getxattr(file.path, "user.origin", &kept, kept.count)
        #expect(kept.prefix(max(count, 0)).elementsEqual(value))
    }

    private func mode(_ path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }
}
