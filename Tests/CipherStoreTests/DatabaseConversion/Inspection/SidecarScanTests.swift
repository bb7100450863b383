internal import CipherDatabaseConversion
internal import CipherErrors
import CipherPlatform
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Whether a log or a journal belongs to the database beside it, as only its pages show.
struct SidecarScanTests {
    /// The sidecar with the pages that the database does not have yet.
    enum Sidecar: String, CaseIterable { case log = "WAL", journal = "DELETE" }

    /// A database as a killed app leaves it.
    private func file(_ sidecar: Sidecar, isEncrypted: Bool, named name: String = "app.db") throws -> LegacyFile {
        try LegacyFile(named: name, unclosed: true) { connection in
            if isEncrypted {
                try connection.setKey(TestKeys.raw(), settings: CipherSettings())
            } else {
                try connection.execute("PRAGMA page_size = 4096")
            }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(sidecar.rawValue)"))
            // Exceeds the cache, so that a journal is synced.
            try connection.executeScript(
                """
                CREATE TABLE t(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                INSERT INTO t SELECT zeroblob(1500) FROM n;
                PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = zeroblob(1400);
                """)
            if sidecar == .log { try connection.execute("COMMIT") }
        }
    }

    private func path(_ file: LegacyFile, _ sidecar: Sidecar) -> String {
        file.path + (sidecar == .log ? "-wal" : "-journal")
    }

    private func edit(_ path: String, _ body: (inout Data) -> Void) throws {
        var bytes = try Data(contentsOf: URL(filePath: path))
        body(&bytes)
        try bytes.write(to: URL(filePath: path))
    }

    @Test(
        "Only sidecar pages of the database's own kind are accepted, and neither file is changed",
        arguments: Sidecar.allCases, [true, false])
    func kinds(_ sidecar: Sidecar, isEncrypted: Bool) throws {
        let file = try file(sidecar, isEncrypted: isEncrypted)
        let paths = try DatabasePaths(file.path)
        let before = try FolderDigest(file.folder.url)
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: !isEncrypted))
        #expect(try SidecarScan.isStale(paths, databaseIsPlaintext: isEncrypted))
        #expect(try SidecarScan.holdsPages(paths))
        #expect(try FolderDigest(file.folder.url) == before)
    }

    /// Makes a database as a killed app leaves it, whose sidecar contains only overflow pages of one row.
    ///
    /// - Parameter more: A script that uses pages before those of the row.
    private func overwritten(
        _ sidecar: Sidecar, isEncrypted: Bool = false, after more: String = ""
    ) throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            if isEncrypted {
                try connection.setKey(TestKeys.raw(), settings: CipherSettings())
            } else {
                try connection.execute("PRAGMA page_size = 4096")
            }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(sidecar.rawValue)"))
            try connection.executeScript(
                text: more + "CREATE TABLE o(id INTEGER PRIMARY KEY, a); INSERT INTO o VALUES (1, zeroblob(400000));")
            if sidecar == .log { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") }
            // Exceeds the cache, so that a journal is synced.
            try connection.executeScript(
                """
                PRAGMA cache_size = 2; BEGIN;
                UPDATE o SET a = CAST(substr(a, 1, 9000) || printf('%0391000d', 7) AS BLOB);
                """)
            if sidecar == .log { try connection.execute("COMMIT") }
        }
    }

    @Test("A sidecar that contains only overflow pages of the database is accepted", arguments: Sidecar.allCases)
    func overflowPages(_ sidecar: Sidecar) throws {
        let file = try overwritten(sidecar)
        let paths = try DatabasePaths(file.path)
        try #require(try SidecarScan.holdsPages(paths))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: true))
        #expect(try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run().outcome == .encrypted)
        let isFormer = try file.read(key: TestKeys.raw()) {
            try $0.value(Bool.self, "SELECT a = zeroblob(400000) FROM o")
        }
        #expect(isFormer == (sidecar == .journal))
    }

    // The engine of SQLCipher 3 writes every page of a changed row.
    @Test(
        "A sidecar that contains only overflow pages of another database is refused, and nothing is changed",
        .enabled(if: Engine.current.cipherMajor >= 4), arguments: Sidecar.allCases, [true, false])
    func otherOverflowPages(_ sidecar: Sidecar, isEncrypted: Bool) throws {
        let file = try overwritten(sidecar)
        let other = try overwritten(
            sidecar, isEncrypted: isEncrypted, after: isEncrypted ? "" : "CREATE TABLE x(a);")
        let bytes = try Data(contentsOf: URL(filePath: path(other, sidecar)))
        try bytes.write(to: URL(filePath: path(file, sidecar)))
        let before = try FolderDigest(file.folder.url)
        #expect(try SidecarScan.isStale(DatabasePaths(file.path), databaseIsPlaintext: true))
        let error = try storeError {
            try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        }
        #expect(error?.code == .staleSidecar)
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test(
        "A log or a journal that ends before its first page contains no page",
        arguments: Sidecar.allCases, [0, 20, 1000])
    func cutOff(_ sidecar: Sidecar, count: Int) throws {
        let file = try file(sidecar, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        try edit(path(file, sidecar)) { $0 = $0.prefix(count) }
        #expect(try !SidecarScan.holdsPages(paths))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: true))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("A log whose pages were lost in a power loss is not taken for another database's", arguments: [1, 2, 40])
    func lostPages(count: Int) throws {
        let file = try file(.log, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        try edit(paths.wal) { log in
            for frame in 0..<count {
                let page = 32 + frame * (24 + 4_096) + 24
                guard page + 4_096 <= log.count else { return }
                log.replaceSubrange(page..<page + 4_096, with: Data(count: 4_096))
            }
        }
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: true))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("A database without a log or a journal has nothing stale beside it")
    func none() throws {
        let file = try LegacyFile { try $0.execute("CREATE TABLE t(a)") }
        let paths = try DatabasePaths(file.path)
        #expect(try !SidecarScan.holdsPages(paths))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: true))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("A journal whose header a commit has set to zeros is ignored")
    func invalidated() throws {
        let file = try file(.journal, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        try edit(paths.journal) { $0.replaceSubrange(0..<28, with: Data(count: 28)) }
        #expect(try !SidecarScan.holdsPages(paths))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("Frames of an earlier generation of the log, with another salt, are ignored")
    func formerGeneration() throws {
        let file = try file(.log, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        #expect(try SidecarScan.isStale(paths, databaseIsPlaintext: false))
        try edit(paths.wal) { $0[16] ^= 1 }
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("A log of a terabyte without a page is not read to its end")
    func hugeLog() throws {
        let file = try file(.log, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        try #require(truncate(paths.wal, 32) == 0 && truncate(paths.wal, 1 << 40) == 0)
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: true))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }

    @Test("Sidecars are found by the bytes of the name, not by a name that looks like it")
    func nameBytes() throws {
        let file = try file(.log, isEncrypted: false)
        let folder = try FileSystem.resolve(file.folder.path("."))
        let strange = SystemPath.text(Array(folder.utf8) + [0x2f, 0x78, 0xff])
        let alike = folder + "/x\u{FFFD}"
        for ending in ["", "-wal"] {
            #expect(
                (file.path + ending).withSystemPath { from in (strange + ending).withSystemPath { rename(from, $0) } }
                    == 0)
        }
        #expect(try SidecarScan.isStale(DatabasePaths(strange), databaseIsPlaintext: false))
        #expect(try !SidecarScan.holdsPages(DatabasePaths(alike)))
    }

    @Test("A link in a log's place is refused, and its target is not read", arguments: Sidecar.allCases)
    func link(_ sidecar: Sidecar) throws {
        let file = try file(sidecar, isEncrypted: false)
        let paths = try DatabasePaths(file.path)
        let elsewhere = try TemporaryFolder()
        try FileManager.default.moveItem(atPath: path(file, sidecar), toPath: elsewhere.path("target"))
        try FileManager.default.createSymbolicLink(
            atPath: path(file, sidecar), withDestinationPath: elsewhere.path("target"))
        let before = try [FolderDigest(file.folder.url), FolderDigest(elsewhere.url)]
        for isPlaintext in [true, false] {
            let error = try storeError { try SidecarScan.isStale(paths, databaseIsPlaintext: isPlaintext) }
            #expect(error?.code == .notAFile)
        }
        #expect(try storeError { try SidecarScan.holdsPages(paths) }?.code == .notAFile)
        #expect(try [FolderDigest(file.folder.url), FolderDigest(elsewhere.url)] == before)
    }

    @Test("A folder or a FIFO in a log's place contains no page, and does not block", arguments: Sidecar.allCases)
    func noFiles(_ sidecar: Sidecar) throws {
        let file = try LegacyFile { try $0.execute("CREATE TABLE t(a)") }
        let paths = try DatabasePaths(file.path)
        try #require(mkfifo(path(file, sidecar), 0o600) == 0)
        #expect(try !SidecarScan.holdsPages(paths))
        try #require(unlink(path(file, sidecar)) == 0)
        try FileSystem.createFolder(path(file, sidecar))
        #expect(try !SidecarScan.holdsPages(paths))
        #expect(try !SidecarScan.isStale(paths, databaseIsPlaintext: false))
    }
}
