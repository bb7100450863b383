internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A rehearsal of the upgrade: the copy is proven and discarded, and the database stays untouched.
struct ShadowProofTests {
    private typealias Fixture = OpeningFixture

    private func shadow(
        _ file: LegacyFile, key: @escaping @Sendable () throws -> CipherKey = { try TestKeys.raw() },
        progress: (@Sendable (UpgradeProgress) -> Void)? = nil
    ) throws -> EncryptionReport {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        options.progress = progress
        return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(key), options: options).shadow()
    }

    /// The digest of the folder, and the modification times of its files.
    private func state(_ file: LegacyFile) throws -> [String] {
        try [file.digest().description]
            + file.folder.names.filter { !$0.hasSuffix("-shm") }.map { name in
                let attributes = try FileManager.default.attributesOfItem(atPath: file.folder.path(name))
                return "\(name) \((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0)"
            }
    }

    @Test(
        "The proof covers the rows of the log, and the files keep their bytes and times", arguments: ["WAL", "DELETE"])
    func proves(journal: String) throws {
        let file = try Fixture.file(version: 23, journal: journal)
        let before = try state(file)
        let report = try shadow(file)
        #expect(report.outcome == .shadow)
        #expect(report.tables == 1)
        #expect(report.rows == 3)
        #expect(report.bytesAfter > 0)
        #expect(report.warnings.besidesLeases == [])
        #expect(Set(report.stageSeconds.keys) == ["quiescing", "building", "proving"])
        #expect(try state(file) == before)
        // The real upgrade then has the same result as the proof.
        let real = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(real.rows == report.rows)
        #expect(real.bytesAfter == report.bytesAfter)
    }

    @Test("A database whose rows are all in its log is not mistaken for an endless one")
    func logAlone() throws {
        let file = try LegacyFile(unclosed: true) { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.execute("PRAGMA wal_autocheckpoint = 0")
            try connection.executeScript(
                """
                CREATE TABLE t(a BLOB);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
                INSERT INTO t SELECT randomblob(400) FROM n
                """)
        }
        let before = try state(file)
        #expect(try shadow(file).rows == 60_000)
        #expect(try state(file) == before)
    }

    @Test("The copy has no name, so nothing of it can be read or left behind")
    func plaintextNowhere() throws {
        let file = try Fixture.file(
            version: 23, extra: "CREATE TABLE secret(a); INSERT INTO secret VALUES ('Geheimnis');")
        let seen = Latest<[String]>()
        _ = try shadow(file, key: { try TestKeys.raw() }) { progress in
            guard progress.stage == .proving, let names = try? file.folder.names else { return }
            seen.value = names.filter { !["app.db", "app.db-wal", "app.db-shm"].contains($0) }
        }
        #expect(seen.value == [])
    }

    @Test("If another connection writes in WAL mode meanwhile, the proof fails as inconclusive")
    func writtenMeanwhile() throws {
        let file = try Fixture.file(version: 23)
        let error = try storeError {
            try shadow(file, key: { try TestKeys.raw() }) { progress in
                guard progress.stage == .proving, progress.bytes == 0 else { return }
                let writer = try? Connection(path: file.path, mode: .readWrite)
                try? writer?.execute("INSERT INTO t VALUES ('meanwhile')")
                writer?.close()
            }
        }
        #expect(error?.code == .busy)
        #expect(error?.detail.contains("wrote") == true)
        #expect(try Fixture.rows(file, key: nil).contains { $0.hasSuffix("meanwhile") })
    }

    @Test("If another connection has a WAL database open, the proof succeeds and warns that the upgrade would not")
    func openElsewhere() throws {
        let file = try Fixture.file(version: 23)
        let reader = try Connection(path: file.path, mode: .readOnly)
        _ = try reader.value(Int.self, "SELECT count(*) FROM t")
        let before = try state(file)
        let report = try shadow(file)
        #expect(report.outcome == .shadow)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(report.warnings.besidesLeases.first?.contains("busy") == true)
        #expect(try state(file) == before)
        reader.close()
    }

    @Test("A failed proof reports its stage and leaves everything unchanged")
    func damaged() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a TEXT);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                INSERT INTO t SELECT 'a row of some length' FROM n
                """)
        }
        let handle = try FileHandle(forUpdating: URL(filePath: file.path))
        try handle.seek(toOffset: 4 * 4096 + 3)
        try handle.write(contentsOf: Data([0xff, 0xff, 0xff, 0xff]))
        try handle.close()
        let before = try state(file)
        let error = try #require(try storeError { try shadow(file) })
        #expect(error.code == .corrupt)
        #expect(error.stage == .building)
        #expect(Set(error.stageSeconds.keys) == ["quiescing", "building"])
        let report = LaunchReport(error)
        #expect(report.outcome == .failed)
        #expect(report.errorCode == "corrupt")
        #expect(report.stage == .building)
        #expect(try state(file) == before)
    }

    @Test("A hot journal left by a crashed writer is not rolled back")
    func hotJournal() throws {
        let file = try LegacyFile(unclosed: true) { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT i FROM n;
                PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = a + 1
                """)
        }
        let before = try state(file)
        let error = try storeError { try shadow(file) }
        #expect(error?.code == .needsRecovery)
        // The folder is writable.
        #expect(error?.advice == "open the file for writing, or run the upgrade")
        #expect(try state(file) == before)
    }

    @Test("An encrypted file or a wrong key is reported, and nothing beside the file is removed")
    func encrypted() throws {
        let file = try Fixture.file(version: 23, encryptedWith: TestKeys.raw())
        var killed = try KilledRun(file.folder)
        try killed.leaveCopy()
        let before = try state(file)
        #expect(try shadow(file).outcome == .alreadyEncrypted)
        #expect(try storeError { try shadow(file, key: { try TestKeys.raw(8) }) }?.code == .keyDoesNotFit)
        #expect(try state(file) == before)
    }

    @Test("Leftovers of a killed upgrade are removed by the shadow proof")
    func leftover() throws {
        let file = try Fixture.file(version: 23)
        var killed = try KilledRun(file.folder)
        let copy = try killed.leaveCopy()
        #expect(try shadow(file).outcome == .shadow)
        #expect(try !file.folder.names.contains(copy))
    }
}

/// The last value that a callback got.
private final class Latest<Value: Sendable>: @unchecked Sendable {
    // Read and written only under `lock`.
    private var latest: Value?
    private let lock = NSLock()

    var value: Value? {
        get { lock.withLock { latest } }
        set { lock.withLock { latest = newValue } }
    }
}
