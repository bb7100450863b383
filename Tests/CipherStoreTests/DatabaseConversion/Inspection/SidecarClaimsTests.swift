internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Logs and journals that would make SQLite cause damage.
///
/// They are refused before the database is opened for writing.
struct SidecarClaimsTests {
    private typealias Fixture = OpeningFixture

    /// A database with a journal that must be rolled back.
    private func interrupted(_ key: CipherKey?) throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            if let key {
                try connection.setKey(key, settings: CipherSettings())
            } else {
                try connection.execute("PRAGMA page_size = 4096")
            }
            // Exceeds the cache, so that the journal is synced and pages are in the file.
            try connection.executeScript(
                """
                CREATE TABLE t(a); INSERT INTO t VALUES ('kept'); PRAGMA user_version = 23;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                INSERT INTO t SELECT zeroblob(1500) FROM n;
                PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = zeroblob(1400);
                """)
        }
    }

    private func edit(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        body(&bytes)
        try Data(bytes).write(to: URL(filePath: path))
    }

    private func expectRefusal(
        _ file: LegacyFile, _ code: StoreError.Code = .corrupt, _ body: () throws -> Void
    ) throws {
        let before = try FolderDigest(file.folder.url)
        let error = try storeError(from: body)
        #expect(error?.code == code)
        #expect(try FolderDigest(file.folder.url) == before)
    }

    private func expectRefusals(
        _ file: LegacyFile, isEncrypted: Bool, _ code: StoreError.Code = .corrupt
    ) throws {
        try expectRefusal(file, code) { _ = try Inspector(path: file.path).inspect(provider: nil, formats: []) }
        try expectRefusal(file, code) {
            _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        }
        try expectRefusal(file, code) { _ = try Fixture.open(file.folder) }
        guard isEncrypted else { return }
        try expectRefusal(file, code) {
            _ = try Decryption(
                path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()],
                options: ConversionOptions()
            ).run()
        }
    }

    @Test("A hot journal that claims a database of terabytes is not rolled back", arguments: [false, true])
    func hugeJournal(isEncrypted: Bool) throws {
        let file = try interrupted(isEncrypted ? TestKeys.raw() : nil)
        try edit(file.path + "-journal") { $0.replaceSubrange(16..<20, with: [0x7f, 0xff, 0xff, 0xff]) }
        try expectRefusals(file, isEncrypted: isEncrypted)
    }

    @Test("The hot journal of another encrypted database is not rolled back, whichever key it has", arguments: [7, 8])
    func otherDatabase(number: UInt8) throws {
        let file = try interrupted(TestKeys.raw(7))
        let other = try interrupted(TestKeys.raw(number))
        let journal = try Data(contentsOf: URL(filePath: other.path + "-journal"))
        try journal.write(to: URL(filePath: file.path + "-journal"))
        let provider = TestKeys.provider { try TestKeys.raw(7) }
        try expectRefusal(file, .staleSidecar) { _ = try EncryptionUpgrade(path: file.path, provider: provider).run() }
        try expectRefusal(file, .staleSidecar) {
            _ = try Decryption(
                path: file.path, provider: provider, formats: [CipherSettings()], options: ConversionOptions()
            ).run()
        }
    }

    @Test("A hot journal of a database that was slightly larger is rolled back")
    func largerOriginal() throws {
        let file = try interrupted(nil)
        let pages = UInt8(try FileSystem.size(file.path).map { $0 / 4096 + 9 } ?? 0)
        try edit(file.path + "-journal") { journal in
            for sector in stride(from: 0, to: journal.count, by: 512)
            where journal[sector...].starts(with: JournalHeader.magic) { journal[sector + 19] = pages }
        }
        #expect(try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run().outcome == .encrypted)
        let first = try file.read(key: TestKeys.raw()) { try $0.value(String.self, "SELECT a FROM t LIMIT 1") }
        #expect(first == "kept")
    }

    @Test("A log that claims a database of terabytes is not read", arguments: [false, true])
    func hugeLog(isEncrypted: Bool) throws {
        let file = try LegacyFile(unclosed: true) { connection in
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                "PRAGMA user_version = 23; PRAGMA wal_checkpoint(TRUNCATE); CREATE TABLE t(a)")
        }
        try edit(file.path + "-wal") { log in
            let last = log.count - 24 - Int(log.big32(8))
            log.replaceSubrange((last + 4)..<(last + 8), with: [0x7f, 0xff, 0xff, 0xff])
            log.sealLog()
        }
        try expectRefusals(file, isEncrypted: isEncrypted)
    }

    @Test(
        "A log with a commit from before its checkpoint truncated the file is merged into the file",
        arguments: [false, true])
    func shrunkFile(isEncrypted: Bool) throws {
        let file = try LegacyFile(unclosed: true) { connection in
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                """
                PRAGMA secure_delete = 0; CREATE TABLE t(a); CREATE TABLE big(a); INSERT INTO big VALUES (zeroblob(8000000));
                PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES ('kept'); DELETE FROM big; VACUUM;
                PRAGMA wal_checkpoint(PASSIVE)
                """)
        }
        try #require(try FileSystem.size(file.path) ?? 0 < 40_000)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == (isEncrypted ? .alreadyEncrypted : .encrypted))
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "SELECT a FROM t") } == "kept")
    }

    /// Names a file at the end of the journal, as SQLite does in a transaction across several databases.
    private func name(_ target: String, in journal: String) throws {
        try edit(journal) { bytes in
            let name = Array(target.utf8)
            let sum = name.reduce(UInt32(0)) { $0 &+ UInt32($1) }
            func big32(_ number: UInt32) -> [UInt8] {
                (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            }
            bytes += big32(0x4000_0000 / 4096 + 1) + name + big32(UInt32(name.count)) + big32(sum) + JournalHeader.magic
        }
    }

    @Test(
        "A hot journal cannot cause the removal of another file",
        arguments: [true, false], ["", "\0app.db-mj1A2B3C9FF"])
    func superJournal(hasHeader: Bool, ending: String) throws {
        let file = try interrupted(nil)
        let elsewhere = try TemporaryFolder()
        let victim = try elsewhere.write("precious", to: "letter")
        try name(victim + ending, in: file.path + "-journal")
        if !hasHeader { try edit(file.path + "-journal") { $0.replaceSubrange(0..<28, with: 1...28) } }
        // Without its magic number and valid sizes, the file is not a journal.
        try expectRefusals(file, isEncrypted: false, hasHeader ? .corrupt : .nameTaken)
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
    }

    @Test("The journal of a transaction across several databases is rolled back")
    func realSuperJournal() throws {
        let file = try interrupted(nil)
        let group = try file.folder.write(file.path + "-journal\0", to: "other.db-mj1A2B3C9FF")
        try name(group, in: file.path + "-journal")
        #expect(try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run().outcome == .encrypted)
        // The super-journal stays: here SQLite may remove only the database's own journal, whatever a journal names.
        #expect(try file.folder.names == ["app.db", "other.db-mj1A2B3C9FF"])
    }

    @Test(
        "A truncated file is refused before its log is written into it",
        arguments: [false, true], [4_096, 9_000, 40_960])
    func cutOff(isEncrypted: Bool, size: UInt64) throws {
        let file = try LegacyFile(unclosed: true) { connection in
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                """
                CREATE TABLE t(a); PRAGMA user_version = 23;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                INSERT INTO t SELECT zeroblob(1500) FROM n;
                """)
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            try connection.execute("UPDATE t SET a = 'late' WHERE rowid = 1")
        }
        let handle = try FileHandle(forWritingTo: URL(filePath: file.path))
        try handle.truncate(atOffset: size)
        try handle.close()
        try expectRefusal(file) {
            if isEncrypted {
                _ = try Decryption(
                    path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()],
                    options: ConversionOptions()
                ).run()
            } else {
                _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
            }
        }
    }

    @Test("A file that another connection extends meanwhile is not mistaken for a truncated one")
    func growing() throws {
        let file = try LegacyFile { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.execute("CREATE TABLE t(a)")
        }
        let (reads, writes) = (BlockingAnswer<Void>(), BlockingAnswer<Void>())
        try DetachedThread.start("writer") {
            writes.give(
                Result {
                    let writer = try Connection(path: file.path, mode: .readWrite)
                    defer { writer.close() }
                    while reads.wait(until: .now) == nil {
                        try writer.execute("INSERT INTO t VALUES (zeroblob(20000))")
                        // Afterwards the log is empty, and its pages are in the file.
                        _ = try writer.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
                    }
                })
        }
        let looks = Result {
            for _ in 1...500 {
                _ = try Inspector(DatabasePaths(file.path)).readingPlaintext {
                    try $0.value(Int.self, "SELECT count(*) FROM t")
                }
            }
        }
        reads.give(.success(()))
        _ = try writes.wait()
        #expect(throws: Never.self) { try looks.get() }
    }

    @Test(
        "The search through a journal ends in a file of terabytes of which the disk holds nothing",
        arguments: [false, true], [false, true])
    func holes(isEncrypted: Bool, isHeaderDamaged: Bool) throws {
        let file = try interrupted(isEncrypted ? TestKeys.raw() : nil)
        let journal = file.path + "-journal"
        // SQLite can read either nothing, or everything before a second header.
        try edit(journal) { bytes in
            if isHeaderDamaged {
                bytes[20..<24] = [0, 0, 0, 3]
            } else {
                bytes += [UInt8](repeating: 1, count: 1 << 16)
            }
        }
        // Not every file system has files of this size.
        let handle = try FileHandle(forWritingTo: URL(filePath: journal))
        guard (try? handle.truncate(atOffset: 1 << 42)) != nil else { return }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let commands: [() throws -> Void] = [
            { _ = try Inspector(path: file.path).inspect(provider: TestKeys.provider(), formats: [CipherSettings()]) },
            {
                _ = try DatabaseRecovery(
                    of: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [],
                    to: file.folder.path("new.db"), targetProvider: nil, template: nil, options: ConversionOptions()
                ).run()
            },
        ]
        for command in commands {
            _ = try storeError(from: command)
            #expect(try Data(contentsOf: URL(filePath: file.path)) == before)
            #expect(try FileSystem.size(journal) == 1 << 42)
        }
    }
}
