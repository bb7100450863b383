internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Restores of backups, and backups of databases that are not open here.
@Suite(.timeLimit(.minutes(20)))
struct RestoreTests {
    private let folder: TemporaryFolder
    private let backups: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        backups = try TemporaryFolder()
    }

    private var database: URL { folder.url.appending(path: "app.db") }
    private var backup: URL { backups.url.appending(path: "backup.db") }

    private static func script(_ body: String, rows: Int = 300) -> String {
        """
        CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, payload BLOB);
        CREATE INDEX note_body ON note(body);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
        INSERT INTO note SELECT i, '\(body) ' || i, zeroblob(i % 900) FROM n;
        PRAGMA user_version = 7;
        """
    }

    private func make(
        _ url: URL, _ body: String, mode: String = "DELETE", key: UInt8? = 7, unclosed: Bool = false
    ) throws {
        try LegacyFile.write(
            url.path(percentEncoded: false), key: try key.map { try TestKeys.raw($0) }, settings: CipherSettings(),
            unclosed: unclosed, script: "PRAGMA journal_mode = \(mode); \(Self.script(body))")
    }

    private func first(_ url: URL? = nil, _ key: UInt8 = 7) throws -> String? {
        let connection = try Connection(
            path: (url ?? database).path(percentEncoded: false), mode: .readWrite, key: TestKeys.raw(key),
            settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA integrity_check") == "ok")
        return try connection.value(String.self, "SELECT body FROM note WHERE id = 1")
    }

    private func mode() throws -> String? {
        let connection = try Connection(
            path: database.path(percentEncoded: false), mode: .readWrite, key: TestKeys.raw(),
            settings: CipherSettings())
        defer { connection.close() }
        return try connection.value(String.self, "PRAGMA journal_mode")
    }

    private static let keys = TestKeys.provider()
    private static let otherKeys = TestKeys.provider { try TestKeys.raw(8) }

    private var impatient: ConversionOptions {
        var options = ConversionOptions()
        options.busyTimeout = .milliseconds(50)
        return options
    }

    // MARK: Backing up a file

    @Test(
        "A database with rows in its log is backed up, and neither the database nor its log changes",
        arguments: ["WAL", "DELETE"])
    func backsUpFile(mode: String) async throws {
        try make(database, "one", mode: mode, unclosed: mode == "WAL")
        let before = try FolderDigest(folder.url, ignoring: ["-shm"])
        let report = try await DatabaseConverter.backup(of: database, to: backup, keyProvider: Self.keys)
        #expect(report.outcome == .backedUp)
        #expect(report.rows == 300)
        #expect(try FolderDigest(folder.url, ignoring: ["-shm"]) == before)
        #expect(try backups.names == ["backup.db"])
        #expect(try first(backup) == "one 1")
    }

    @Test("A plaintext database is backed up under a key, and refused without one")
    func backsUpPlaintext() async throws {
        try make(database, "one", key: nil)
        let error = try await failure(StoreError.self) {
            try await DatabaseConverter.backup(of: database, to: backup, keyProvider: Self.keys)
        }
        #expect(error.code == .unexpectedPlaintext)
        #expect(try backups.names.isEmpty)
        try await DatabaseConverter.backup(
            of: database, to: backup, keyProvider: Self.keys, backupKeyProvider: Self.otherKeys)
        #expect(try first(backup, 8) == "one 1")
    }

    @Test("A wrong key and a writer that keeps its lock leave no backup")
    func backupRefused() async throws {
        try make(database, "one", mode: "WAL")
        let error = try await failure(StoreError.self) {
            try await DatabaseConverter.backup(of: database, to: backup, keyProvider: Self.otherKeys)
        }
        #expect(error.code == .keyDoesNotFit)
        let writer = try Connection(
            path: database.path(percentEncoded: false), mode: .readWrite, key: TestKeys.raw(),
            settings: CipherSettings())
        defer { writer.close() }
        try writer.execute("BEGIN IMMEDIATE")
        let busy = try await failure(StoreError.self) {
            try await DatabaseConverter.backup(
                of: database, to: backup, keyProvider: Self.keys, options: impatient)
        }
        #expect(busy.code == .busy)
        #expect(try backups.names.isEmpty)
    }

    /// Scripts for content that the schema forbids, or that its modules complain about or cannot open.
    private static let oddContent: [String] = {
        func forbidden(_ before: String, _ after: String) -> String {
            "\(before); PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '\(after)' WHERE name = 't'"
        }
        var scripts = [
            forbidden("CREATE TABLE t(a); INSERT INTO t VALUES (NULL), (1)", "CREATE TABLE t(a NOT NULL)"),
            forbidden("CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('12'), ('x')", "CREATE TABLE t(a INT)"),
            forbidden("CREATE TABLE t(a); INSERT INTO t VALUES (12)", "CREATE TABLE t(a TEXT)"),
            "PRAGMA ignore_check_constraints = ON; CREATE TABLE t(a CHECK(a > 5)); INSERT INTO t VALUES (1), (9)",
            "CREATE VIRTUAL TABLE t USING fts4(content='', b); INSERT INTO t(docid, b) VALUES (1, 'one'), (2, 'two')",
            """
            CREATE TABLE s(b); INSERT INTO s VALUES ('one'), ('two'); CREATE VIRTUAL TABLE t USING fts4(content='s', b);
            INSERT INTO t(t) VALUES ('rebuild'); DELETE FROM s WHERE b = 'one'; INSERT INTO s VALUES ('three')
            """,
            // Options of a newer SQLite.
            forbidden(
                "CREATE VIRTUAL TABLE t USING fts4(b); INSERT INTO t VALUES ('one')",
                "CREATE VIRTUAL TABLE t USING fts4(b, newer=1)"),
        ]
        if Engine.current.sqliteVersionNumber >= 3_037_000 {
            scripts.append(
                forbidden("CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('x')", "CREATE TABLE t(a INT) STRICT"))
        }
        if Engine.current.wasBuilt(with: "ENABLE_FTS5") {
            scripts.append(
                """
                CREATE TABLE s(b); INSERT INTO s VALUES ('one'), ('two');
                CREATE VIRTUAL TABLE t USING fts5(b, content='s'); INSERT INTO t(t) VALUES ('rebuild');
                DELETE FROM s WHERE b = 'one'
                """)
            scripts.append(
                forbidden(
                    "CREATE VIRTUAL TABLE t USING fts5(b); INSERT INTO t VALUES ('one')",
                    "CREATE VIRTUAL TABLE t USING fts5(b, newer=1)"))
        }
        return scripts
    }()

    @Test("A database with content that its schema forbids is sound, and its backup is restored", arguments: oddContent)
    func content(script: String) async throws {
        try LegacyFile.write(
            database.path(percentEncoded: false), key: TestKeys.raw(), script: "\(script); \(Self.script("old"))")
        #expect(try await DatabaseConverter.verify(database, keyProvider: Self.keys).complaints == [])
        try await DatabaseConverter.backup(of: database, to: backup, keyProvider: Self.keys)
        #expect(try await DatabaseConverter.verify(backup, keyProvider: Self.keys).complaints == [])
        for file in try folder.names { try FileManager.default.removeItem(atPath: folder.path(file)) }
        let report = try await DatabaseConverter.restore(database, from: backup, keyProvider: Self.keys)
        #expect(report.outcome == .restored)
        #expect(try await DatabaseConverter.verify(database, keyProvider: Self.keys).complaints == [])
    }

    @Test("A full-text table that cannot be opened does not hide the damaged index of another table")
    func unopenedAndDamaged() async throws {
        try LegacyFile.write(
            database.path(percentEncoded: false),
            script: """
                CREATE VIRTUAL TABLE t USING fts4(b); INSERT INTO t VALUES ('one'); \(Self.script("old"));
                PRAGMA writable_schema = ON;
                UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE t USING fts4(b, newer=1)' WHERE name = 't';
                UPDATE sqlite_master SET sql = 'CREATE INDEX note_body ON note(id)' WHERE name = 'note_body'
                """)
        let found = try await DatabaseConverter.verify(database, keyProvider: Self.keys)
        #expect(found.complaints.contains { $0.hasSuffix(" index note_body") }, "\(found)")
        let report = try await DatabaseConverter.encrypt(database, keyProvider: Self.keys)
        #expect(report.rebuiltIndexes == ["note_body"], "\(report)")
    }

    @Test(
        "A view or a virtual table does not hide a free list with pages in use",
        .enabled(if: Engine.current.checksTables),
        arguments: [
            "VIRTUAL TABLE t USING fts4(b)", "VIRTUAL TABLE t USING fts4(b, newer=1)",
            "VIRTUAL TABLE t USING rtree(id, low, high)", "VIEW t AS SELECT 1", "view t AS SELECT 1",
        ], [false, true])
    func freeList(last: String, isWellFormed: Bool) async throws {
        // SQLite goes by the definition.
        let type = last.hasPrefix("view") ? ", type = 'View'" : ""
        try LegacyFile.write(
            database.path(percentEncoded: false),
            script: """
                \(Self.script("old")); CREATE \(last.replacing(", newer=1", with: ""));
                CREATE TABLE many(x); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
                INSERT INTO many SELECT hex(zeroblob(100)) FROM n; VACUUM;
                CREATE TABLE gone AS SELECT * FROM many; DROP TABLE gone; PRAGMA writable_schema = ON;
                UPDATE sqlite_master SET sql = 'CREATE \(last)'\(type) WHERE name = 't'
                """)
        #expect(try await DatabaseConverter.verify(database, keyProvider: Self.keys).complaints == [])
        var bytes = try Data(contentsOf: database)
        let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
        let trunk = Int([UInt8](bytes).big32(32))
        // A leaf of the table that was not dropped.
        let leaf = try #require(
            (2..<trunk).last { bytes[($0 - 1) * pageSize] == 13 && bytes[($0 - 1) * pageSize + 4] > 1 })
        // The free list begins with the leaf, or with a trunk that names the leaf in place of a free page.
        let place = isWellFormed ? (trunk - 1) * pageSize + 8 : 32
        bytes.replaceSubrange(place..<place + 4, with: [0, 0, UInt8(leaf >> 8), UInt8(leaf & 255)])
        try bytes.write(to: database)
        #expect(try await !DatabaseConverter.verify(database, keyProvider: Self.keys).isSound)
    }

    @Test("However many values the schema forbids, a verification also finds a damaged index")
    func forbiddenAndDamaged() async throws {
        let path = database.path(percentEncoded: false)
        try LegacyFile.write(
            path,
            script: """
                CREATE TABLE a(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                INSERT INTO a SELECT NULL FROM n; \(Self.script("old"));
                PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE a(x NOT NULL)' WHERE name = 'a';
                UPDATE sqlite_master SET sql = 'CREATE INDEX note_body ON note(id)' WHERE name = 'note_body'
                """)
        let found = try await DatabaseConverter.verify(database, keyProvider: Self.keys)
        #expect(!found.isSound, "\(found)")
        // SQLite 3.15 does not report the values.
        #expect(found.warnings.contains { $0.hasSuffix("NULL value in a.x") } == Engine.current.checksTables)
    }

    // MARK: Restoring

    @Test(
        "A backup replaces a database, which keeps its key, journal mode and file mode",
        arguments: ["WAL", "DELETE"])
    func replaces(mode: String) async throws {
        try make(database, "new", mode: mode, unclosed: mode == "WAL")
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: folder.path("app.db"))
        try make(backup, "old", key: 8)
        let before = try FolderDigest(backups.url)
        let report = try await DatabaseConverter.restore(
            database, from: backup, keyProvider: Self.keys, backupKeyProvider: Self.otherKeys)
        #expect(report.outcome == .restored)
        #expect(report.rows == 300)
        #expect(try first() == "old 1")
        #expect(try self.mode() == mode.lowercased())
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("app.db"))
        #expect(attributes[.posixPermissions] as? Int == 0o640)
        #expect(try FolderDigest(backups.url) == before)
        #expect(try folder.names.filter { $0 != "app.db" }.isEmpty)
    }

    @Test("A backup becomes the database if there is none, or an empty file", arguments: [false, true])
    func makes(isEmpty: Bool) async throws {
        if isEmpty { try folder.write("", to: "app.db") }
        try make(backup, "old", mode: "WAL", unclosed: true)
        let before = try FolderDigest(backups.url, ignoring: ["-shm"])
        let report = try await DatabaseConverter.restore(database, from: backup, keyProvider: Self.keys)
        #expect(report.outcome == .restored)
        #expect(try first() == "old 1")
        #expect(try folder.names == ["app.db"])
        #expect(try FolderDigest(backups.url, ignoring: ["-shm"]) == before)
    }

    @Test("A plaintext backup is restored under the database's key, with a warning, and only if that is allowed")
    func plaintextBackup() async throws {
        try make(database, "new")
        try make(backup, "old", key: nil)
        let before = try FolderDigest(folder.url)
        let error = try await failure(StoreError.self) {
            try await DatabaseConverter.restore(database, from: backup, keyProvider: Self.keys)
        }
        #expect(error.code == .unexpectedPlaintext)
        #expect(try FolderDigest(folder.url) == before)
        let report = try await DatabaseConverter.restore(
            database, from: backup, keyProvider: Self.keys, allowsPlaintext: true)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(try first() == "old 1")
    }

    @Test("A backup that is replaced by a plaintext file after its check is refused", arguments: [false, true])
    func exchanged(isAllowed: Bool) throws {
        try make(database, "new")
        try make(backup, "old")
        let before = try FolderDigest(folder.url)
        let restore = try DatabaseRestore(
            of: backup.path(percentEncoded: false), backupProvider: nil,
            to: DatabasePaths(database.path(percentEncoded: false)), provider: Self.keys,
            formats: [CipherSettings()], backupFormats: [CipherSettings()], allowsPlaintext: isAllowed,
            options: ConversionOptions())
        let error = try storeError {
            try restore.run(whenProven: {
                try FileManager.default.removeItem(at: backup)
                try make(backup, "forged", key: nil)
            })
        }
        #expect(error?.code == .busy)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A damaged, truncated, empty, foreign or missing backup is refused, and the database stays unchanged")
    func badBackups() async throws {
        try make(database, "new")
        try make(backup, "old")
        let whole = try Data(contentsOf: backup)
        var damaged = whole
        // The offset is after the first pages, which the opening reads.
        damaged[whole.count - 2_000] ^= 1
        var noise = whole
        noise.replaceSubrange(0..<4096, with: Data(repeating: 90, count: 4096))
        let cases: [(String, Data?, StoreError.Code)] = [
            ("damaged", damaged, .corrupt), ("cut", whole.prefix(whole.count - 4096), .corrupt),
            ("empty", Data(), .corrupt), ("noise", noise, .keyDoesNotFit), ("missing", nil, .missingFile),
        ]
        for (name, content, code) in cases {
            try? FileManager.default.removeItem(at: backup)
            try content?.write(to: backup)
            let before = try FolderDigest(folder.url)
            let beforeBackup = try FolderDigest(backups.url)
            let error = try await failure(StoreError.self) {
                try await DatabaseConverter.restore(database, from: backup, keyProvider: Self.keys)
            }
            // Without a check of all pages, a truncated file may be reported as one that cannot be read.
            #expect(error.code == code, "\(name): \(error)")
            #expect(try FolderDigest(folder.url) == before, "\(name)")
            #expect(try FolderDigest(backups.url) == beforeBackup, "\(name)")
        }
        try whole.write(to: backup)
        try Data("not a log of this file".utf8).write(to: backups.url.appending(path: "backup.db-wal"))
        let before = try FolderDigest(folder.url)
        await #expect(throws: StoreError.self) {
            try await DatabaseConverter.restore(database, from: backup, keyProvider: Self.keys)
        }
        #expect(try FolderDigest(folder.url) == before)
        #expect(try first() == "new 1")
    }

    @Test("A restore refuses a wrong key, a plaintext database, one in use and the database as its own backup")
    func refusals() async throws {
        try make(backup, "old")
        func refused(
            _ keys: any KeyProvider, _ backupKeys: (any KeyProvider)? = nil, from source: URL? = nil
        ) async throws -> StoreError {
            let before = try FolderDigest(folder.url)
            let error = try await failure(StoreError.self) {
                try await DatabaseConverter.restore(
                    database, from: source ?? backup, keyProvider: keys, backupKeyProvider: backupKeys,
                    options: impatient)
            }
            #expect(try FolderDigest(folder.url) == before)
            return error
        }
        try make(database, "new")
        let wrongBackup = try await refused(Self.keys, Self.otherKeys)
        #expect(wrongBackup.code == .keyDoesNotFit)
        #expect(wrongBackup.path?.hasSuffix("backup.db") == true)
        let otherBackup = backups.url.appending(path: "other.db")
        try make(otherBackup, "old", key: 8)
        let noBackupKey = try await refused(Self.keys, from: otherBackup)
        #expect(noBackupKey.code == .keyDoesNotFit)
        #expect(noBackupKey.advice.contains("backupKeyProvider"), "\(noBackupKey)")
        try Data("some text".utf8).write(to: otherBackup)
        #expect(try await refused(Self.keys, from: otherBackup).advice == "check the path; nothing was changed")
        let wrongDatabase = try await refused(Self.otherKeys, Self.keys)
        #expect(wrongDatabase.code == .keyDoesNotFit)
        #expect(wrongDatabase.path?.hasSuffix("app.db") == true)
        #expect(wrongDatabase.advice.contains("move the database"))
        let itself = try await refused(Self.keys, from: database)
        #expect(itself.code == .nameTaken)
        let user = try Connection(
            path: database.path(percentEncoded: false), mode: .readWrite, key: TestKeys.raw(),
            settings: CipherSettings())
        try user.execute("BEGIN")
        try user.proveReadable()
        let busy = try await failure(StoreError.self) {
            try await DatabaseConverter.restore(
                database, from: backup, keyProvider: Self.keys, options: impatient)
        }
        #expect(busy.code == .busy)
        try user.execute("COMMIT")
        user.close()
        #expect(try first() == "new 1")
        try FileManager.default.removeItem(at: database)
        try make(database, "new", key: nil)
        let plaintext = try await refused(Self.keys)
        #expect(plaintext.code == .unexpectedPlaintext)
    }

    @Test("A canceled restore leaves the database unchanged", arguments: [UpgradeStage.building, .proving, .swapping])
    func cancelled(stage: UpgradeStage) async throws {
        try make(database, "new")
        try make(backup, "old")
        let cancellation = UpgradeCancellation()
        let error = try await failure(StoreError.self) {
            try await DetachedThread.run { [database, backup] in
                try Self.blocking(database, backup, cancellation) { if $0.stage == stage { cancellation.cancel() } }
            }
        }
        #expect(error.code == .cancelled)
        #expect(try folder.names == ["app.db"])
        #expect(try first() == "new 1")
    }

    private static func blocking(
        _ database: URL, _ backup: URL, _ cancellation: UpgradeCancellation,
        _ progress: @escaping @Sendable (UpgradeProgress) -> Void
    ) throws {
        try DatabaseConverter.restoreBlocking(
            database, from: backup, keyProvider: keys, progress: progress, cancellation: cancellation)
    }
}
