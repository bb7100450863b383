import CipherSQLite
import Foundation
import TestSupport
import Testing

@testable import CipherStore

/// What a run that died left behind, and runs that end early.
struct RecoveryTests {
    private typealias Fixture = OpeningFixture

    private static let leftovers = [
        "app.db-upgrade", "app.db-upgrade-journal", "app.db-upgrade-wal", "app.db-upgrade-shm", "app.db-plaintext-new",
        "app.db-attempt-new",
    ]

    private func upgrade(
        _ file: LegacyFile, _ change: (inout EncryptionUpgrade.Options) -> Void = { _ in }
    ) throws -> EncryptionReport {
        var options = EncryptionUpgrade.Options()
        options.busyTimeout = 0
        change(&options)
        return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
    }

    @Test("A leftover beside a plaintext file is discarded", arguments: leftovers)
    func besidePlaintext(name: String) throws {
        let file = try Fixture.file(version: 23)
        try file.folder.write("half a copy", to: name)
        #expect(try upgrade(file).outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
        #expect(try file.folder.names == ["app.db"])
    }

    @Test("A leftover beside an encrypted file is swept", arguments: leftovers)
    func besideEncrypted(name: String) throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw())
        try file.folder.write("half a copy", to: name)
        #expect(try upgrade(file).outcome == .alreadyEncrypted)
        #expect(try !file.folder.names.contains(name))
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A leftover beside an encrypted file whose key does not fit stays", arguments: leftovers)
    func besideForeign(name: String) throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(8))
        try file.folder.write("half a copy", to: name)
        let before = try file.digest()
        #expect(try storeError { try upgrade(file) }?.code == .keyDoesNotFit)
        #expect(try file.digest() == before)
    }

    @Test("A leftover beside nothing does not become the database", arguments: leftovers)
    func besideNothing(name: String) throws {
        let folder = try TemporaryFolder()
        try folder.write("half a copy", to: name)
        #expect(try Fixture.open(folder).report.outcome == .created)
        #expect(try folder.names == ["app.db"])
    }

    @Test("The journal of a database that is gone does not cut the new one to nothing")
    func strayJournal() throws {
        let folder = try TemporaryFolder()
        var header: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]
        header += [0, 0, 2, 0, 0, 0, 16, 0] + [UInt8](repeating: 0, count: 484)
        try Data(header).write(to: folder.url.appending(path: "app.db-journal"))
        #expect(try Fixture.open(folder).report.outcome == .created)
        #expect(try folder.names == ["app.db"])
        #expect(try Fixture.open(folder).report.outcome == .opened)
    }

    @Test("A first page that a power loss tore is put back from the journal, under the right key alone")
    func tornFirstPage() throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw(), journal: "DELETE")
        let writer = try Connection(path: file.path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { writer.close() }
        // More than the cache holds, so that the journal is synced and pages are in the file.
        try writer.executeScript(
            """
            PRAGMA cache_size = 5; BEGIN; PRAGMA user_version = 99; CREATE TABLE filler(a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO filler SELECT zeroblob(3000) FROM n;
            """)
        let crashed = try TemporaryFolder()
        var database = try Data(contentsOf: URL(filePath: file.path))
        database.replaceSubrange(2_048..<4_096, with: Data(repeating: 7, count: 2_048))
        try database.write(to: crashed.url.appending(path: "app.db"))
        try FileManager.default.copyItem(atPath: file.path + "-journal", toPath: crashed.path("app.db-journal"))
        func run(_ key: @escaping @Sendable () throws -> CipherKey) throws -> EncryptionReport {
            try EncryptionUpgrade(path: crashed.path("app.db"), provider: TestKeys.provider(key)).run()
        }

        #expect(try storeError { try run { try TestKeys.raw(8) } }?.code == .keyDoesNotFit)
        #expect(try Data(contentsOf: crashed.url.appending(path: "app.db")) == database)
        #expect(try crashed.names == ["app.db", "app.db-journal"])
        #expect(try run { try TestKeys.raw() }.outcome == .alreadyEncrypted)
        let read = try Connection(
            path: crashed.path("app.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { read.close() }
        #expect(try read.value(Int.self, "PRAGMA user_version") == 23)
    }

    @Test("A folder in the way of the copy is told and nothing is changed")
    func folderInTheWay() throws {
        let file = try Fixture.file(version: 23)
        try FileManager.default.createDirectory(
            at: file.folder.url.appending(path: "app.db-upgrade"), withIntermediateDirectories: false)
        let before = try file.digest()
        #expect(try storeError { try upgrade(file) }?.code == .notAFile)
        #expect(try file.digest() == before)
    }

    @Test("WAL mode comes back after a run that died", arguments: [true, false])
    func journalMode(diedBeforeTheSwap: Bool) throws {
        let file = try Fixture.file(
            version: 23, encryptedWith: diedBeforeTheSwap ? nil : TestKeys.raw(), journal: "DELETE")
        try file.folder.write("1 wal\n", to: "app.db-attempt")
        #expect(try upgrade(file).outcome == (diedBeforeTheSwap ? .encrypted : .alreadyEncrypted))
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA journal_mode") } == "wal")
        #expect(try file.folder.names.filter { $0.hasPrefix("app.db-attempt") } == [])
    }

    @Test("After too many attempts the upgrade is refused, or the file opened as it is")
    func attempts() throws {
        let file = try Fixture.file(version: 23)
        try file.folder.write("3 wal\n", to: "app.db-attempt")
        let before = try file.digest()
        let refusing = Fixture.configuration(.init(sinceVersion: 24, maximumAttempts: 3))
        #expect(try storeError { try Fixture.open(file.folder, refusing) }?.code == .repeatedFailure)
        #expect(try file.digest() == before)
        let opening = Fixture.configuration(
            .init(sinceVersion: 24, maximumAttempts: 3, onRepeatedFailure: .openPlaintext))
        let opened = try Fixture.open(file.folder, opening)
        #expect(opened.report.outcome == .openedPlaintext)
        #expect(opened.report.warnings.count == 1)
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
        // The next release tries again, for the file was not stamped as meant to be plaintext.
        let patient = Fixture.configuration(
            .init(sinceVersion: 24, unexpectedPlaintext: .encrypt, maximumAttempts: 9))
        #expect(try Fixture.open(file.folder, patient).report.outcome == .encrypted)
        #expect(try Fixture.rows(file, key: TestKeys.raw()) == Fixture.allRows)
    }

    @Test("A run that ends by itself is not counted as one that died")
    func notCounted() throws {
        let file = try Fixture.file(version: 23)
        for _ in 0..<3 {
            let error = try storeError {
                try upgrade(file) { options in
                    let cancellation = UpgradeCancellation()
                    options.maximumAttempts = 1
                    options.cancellation = cancellation
                    options.progress = { if $0.stage == .building { cancellation.cancel() } }
                }
            }
            #expect(error?.code == .cancelled)
        }
        #expect(try upgrade(file) { $0.maximumAttempts = 1 }.outcome == .encrypted)
    }

    @Test(
        "A run that is cancelled in any stage leaves the file and its journal mode as they were",
        arguments: UpgradeProgress.Stage.allCases.filter { $0 != .migrating }, [true, false])
    func cancel(stage: UpgradeProgress.Stage, keepBackup: Bool) throws {
        for journal in ["WAL", "DELETE"] {
            let file = try Fixture.file(version: 23, journal: journal)
            let original = try file.originalDump()
            let error = try storeError {
                try upgrade(file) { options in
                    let cancellation = UpgradeCancellation()
                    options.keepBackup = keepBackup
                    options.cancellation = cancellation
                    options.progress = { if $0.stage == stage { cancellation.cancel() } }
                }
            }
            #expect(error?.code == .cancelled)
            #expect(try file.folder.names.filter { $0 != "app.db-wal" && $0 != "app.db-shm" } == ["app.db"])
            #expect(try file.startsAsPlaintext)
            #expect(try file.dump(key: nil) == original)
            #expect(try upgrade(file) { $0.keepBackup = keepBackup }.outcome == .encrypted)
            #expect(try file.dump(key: TestKeys.raw()) == original)
        }
    }
}
