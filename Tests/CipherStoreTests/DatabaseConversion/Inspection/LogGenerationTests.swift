internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A `-wal` beside an older or a newer copy of its database.
struct LogGenerationTests {
    /// A database in WAL mode, which is copied while it is used.
    private final class App {
        let folder: TemporaryFolder
        let isEncrypted: Bool
        private(set) var connections: [Connection] = []

        init(isEncrypted: Bool) throws {
            folder = try TemporaryFolder()
            self.isEncrypted = isEncrypted
        }

        deinit { for connection in connections { connection.close() } }

        @discardableResult
        func connect() throws -> Connection {
            let connection = try Connection(path: folder.path("app.db"), mode: .create, busyTimeout: .zero)
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.execute("PRAGMA wal_autocheckpoint = 0")
            // After its first read, the connection prevents the removal of the log.
            _ = try connection.value(Int.self, "SELECT count(*) FROM sqlite_master")
            connections.append(connection)
            return connection
        }

        func disconnect(_ index: Int) { connections.remove(at: index).close() }

        /// Stops keeping the latest connection, which then belongs to the caller.
        func forgetLast() { connections.removeLast() }

        /// Returns the bytes of a file beside the database as it is now.
        func bytes(_ ending: String = "") -> Data {
            (try? Data(contentsOf: URL(filePath: folder.path("app.db" + ending)))) ?? Data()
        }

        /// Extends the file beyond the number of pages in its header, as growth in chunks does; no connection is open.
        func extendFile() throws {
            let file = try FileHandle(forWritingTo: URL(filePath: folder.path("app.db")))
            try file.truncate(atOffset: file.seekToEnd() + 100_000)
            try file.close()
        }

        func run(_ script: String) throws {
            let connection = try connect()
            try connection.executeScript(text: script)
            disconnect(connections.count - 1)
        }

        /// Puts a database and a log side by side, as a restored backup does.
        func copies(database: Data, log: Data) throws -> TemporaryFolder {
            let copies = try TemporaryFolder()
            try database.write(to: URL(filePath: copies.path("app.db")))
            try log.write(to: URL(filePath: copies.path("app.db-wal")))
            return copies
        }
    }

    private static func isRefused(_ folder: TemporaryFolder, isEncrypted: Bool) throws -> Bool {
        try Inspector(path: folder.path("app.db")).inspect(
            provider: isEncrypted ? TestKeys.provider() : nil, formats: [CipherSettings()]
        ).state == .staleSidecar
    }

    // MARK: Logs of another generation

    private static let begin = "CREATE TABLE t(a); INSERT INTO t VALUES (randomblob(9000)), (randomblob(9000));"
    private static let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE);"

    @Test(
        "A newer log beside an older copy of its database is refused, and nothing is changed", arguments: [true, false])
    func olderDatabase(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.connect()
        try app.run(Self.begin + Self.checkpoint)
        let older = app.bytes()
        for number in 0..<3 {
            try app.run("CREATE TABLE x\(number)(a); INSERT INTO t VALUES (randomblob(5000));" + Self.checkpoint)
        }
        try app.run("CREATE TABLE y(a); DELETE FROM t WHERE rowid = 1; INSERT INTO t VALUES (randomblob(20000))")
        try expectRefusal(app.copies(database: older, log: app.bytes("-wal")), isEncrypted: isEncrypted)
    }

    @Test(
        "An older log beside a newer copy of its database is refused, and nothing is changed", arguments: [true, false])
    func newerDatabase(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.connect()
        try app.run(Self.begin + Self.checkpoint + "CREATE TABLE x(a)")
        let older = app.bytes("-wal")
        for _ in 0..<2 { try app.run("INSERT INTO t VALUES (randomblob(50000));" + Self.checkpoint) }
        try expectRefusal(app.copies(database: app.bytes(), log: older), isEncrypted: isEncrypted)
    }

    @Test("A log without page 1 that ends with another number of pages is refused", arguments: [true, false])
    func resized(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.connect()
        try app.run(Self.begin + "CREATE TABLE u(a); INSERT INTO u VALUES (1);" + Self.checkpoint)
        try app.run("UPDATE u SET a = 2")
        let older = app.bytes("-wal")
        try app.run("INSERT INTO t VALUES (randomblob(50000));" + Self.checkpoint)
        try expectRefusal(app.copies(database: app.bytes(), log: older), isEncrypted: isEncrypted)
    }

    @Test(
        "A foreign log that no number reveals is refused if it damages the database",
        arguments: [true, false])
    func damaging(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        // A single connection gives the same counter to each page 1 that it writes.
        let connection = try app.connect()
        try connection.executeScript(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE u(a);
            WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300)
            INSERT INTO t SELECT n, randomblob(500) FROM c;
            PRAGMA wal_checkpoint(TRUNCATE)
            """)
        let older = app.bytes()
        try connection.executeScript(
            """
            DELETE FROM t WHERE id BETWEEN 50 AND 250; INSERT INTO u SELECT randomblob(500) FROM t LIMIT 60;
            PRAGMA wal_checkpoint(TRUNCATE);
            DELETE FROM t WHERE id > 280; INSERT INTO u SELECT randomblob(500) FROM t LIMIT 30
            """)
        let folder = try app.copies(database: older, log: app.bytes("-wal"))
        let before = try FolderDigest(folder.url)
        let path = folder.path("app.db")
        let run: () throws -> Void = {
            if isEncrypted {
                _ = try Decryption(
                    path: path, provider: TestKeys.provider(), formats: [CipherSettings()],
                    options: ConversionOptions()
                ).run()
            } else {
                _ = try EncryptionUpgrade(path: path, provider: TestKeys.provider()).run()
            }
        }
        let error = try #require(try storeError { try run() })
        #expect(error.code == .staleSidecar)
        #expect(error.advice.contains("nothing was changed"))
        #expect(try FolderDigest(folder.url) == before)
    }

    private func expectRefusal(_ folder: TemporaryFolder, isEncrypted: Bool) throws {
        let before = try FolderDigest(folder.url)
        #expect(try Self.isRefused(folder, isEncrypted: isEncrypted))
        var configuration = Configuration(databaseName: "app.db", version: 1)
        for isEnabled in [true, false] {
            configuration.encryption.isEnabled = isEnabled
            configuration.encryption.whenDisabled = .decrypt
            let opening = try StoreOpening(
                configuration: configuration, directory: folder.url.path(percentEncoded: false),
                provider: TestKeys.provider())
            #expect(try storeError { try opening.run() }?.code == .staleSidecar)
            #expect(try storeError { try opening.plan() }?.code == .staleSidecar)
        }
        let path = folder.path("app.db")
        #expect(
            try storeError { try EncryptionUpgrade(path: path, provider: TestKeys.provider()).run() }?.code
                == .staleSidecar)
        #expect(try FolderDigest(folder.url) == before)
    }

    // MARK: Logs of the same generation

    /// Changes the end of a long value, which writes only one overflow page.
    private static let overwriting: SQL =
        "UPDATE o SET a = CAST(substr(a, 1, 19990) || hex(randomblob(5)) AS BLOB) WHERE id = 1"
    private static let long = "CREATE TABLE o(id INTEGER PRIMARY KEY, a); INSERT INTO o VALUES (1, zeroblob(20000));"

    // The engine of SQLCipher 3 writes every page of a changed row.
    @Test(
        "A log whose commits consist of overflow pages alone is accepted, and no commit is lost",
        .enabled(if: Engine.current.cipherMajor >= 4))
    func overflowPages() throws {
        for isEncrypted in [true, false] {
            let app = try App(isEncrypted: isEncrypted)
            let connection = try app.connect()
            try connection.executeScript(text: Self.long + Self.checkpoint)
            try connection.execute(Self.overwriting)
            // The log has a header and one frame.
            try #require(app.bytes("-wal").count == 32 + 24 + 4_096)
            let killed = try app.copies(database: app.bytes(), log: app.bytes("-wal"))
            #expect(try !Self.isRefused(killed, isEncrypted: isEncrypted))
            let report = try EncryptionUpgrade(path: killed.path("app.db"), provider: TestKeys.provider()).run()
            #expect(report.outcome == (isEncrypted ? .alreadyEncrypted : .encrypted))
            #expect(try value(in: killed) == connection.value(String.self, "SELECT hex(a) FROM o"))
        }
    }

    @Test("A log that contains only overflow pages of an unfinished transaction is accepted", arguments: [true, false])
    func unfinished(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        let connection = try app.connect()
        try connection.executeScript(text: Self.long + Self.checkpoint)
        let before = try connection.value(String.self, "SELECT hex(a) FROM o")
        try connection.executeScript("PRAGMA cache_size = 5; BEGIN; INSERT INTO o VALUES (2, randomblob(900000))")
        try #require(app.bytes("-wal").count > 100_000)
        let killed = try app.copies(database: app.bytes(), log: app.bytes("-wal"))
        #expect(try !Self.isRefused(killed, isEncrypted: isEncrypted))
        _ = try EncryptionUpgrade(path: killed.path("app.db"), provider: TestKeys.provider()).run()
        #expect(try value(in: killed) == before)
    }

    @Test(
        "A log without page 1 beside a file that is longer than its header states is accepted, and no commit is lost",
        arguments: [true, false])
    func longerFile(isEncrypted: Bool) throws {
        let app = try App(isEncrypted: isEncrypted)
        try app.run("CREATE TABLE o(a); INSERT INTO o VALUES (1)")
        try app.extendFile()
        try app.connect().execute("UPDATE o SET a = 'late'")
        let killed = try app.copies(database: app.bytes(), log: app.bytes("-wal"))
        #expect(try !Self.isRefused(killed, isEncrypted: isEncrypted))
        _ = try EncryptionUpgrade(path: killed.path("app.db"), provider: TestKeys.provider()).run()
        #expect(try value(in: killed) == "6C617465")
    }

    private func value(in folder: TemporaryFolder) throws -> String? {
        let connection = try Connection(
            path: folder.path("app.db"), mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        return try connection.value(String.self, "SELECT group_concat(hex(a)) FROM o")
    }

    @Test("No state of a healthy database is refused, whatever its connections do", arguments: [true, false], 0..<6)
    func healthy(isEncrypted: Bool, seed: UInt64) throws {
        var random = Random(state: seed &* 0x9e37_79b9_7f4a_7c15 | 1)
        let app = try App(isEncrypted: isEncrypted)
        var readers: [Connection] = []
        try app.run(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t(a);
            CREATE TABLE o(id INTEGER PRIMARY KEY, a); INSERT INTO o VALUES (1, zeroblob(20000))
            """)
        if seed.isMultiple(of: 2) { try app.extendFile() }
        try app.connect()
        var looks = 0
        for step in 0..<60 {
            let index = random.below(app.connections.count)
            let connection = app.connections[index]
            do {
                switch random.below(16) {
                case 0...2: try connection.execute("INSERT INTO t(a) VALUES (randomblob(\(random.below(9000))))")
                case 3: try connection.execute("UPDATE t SET a = randomblob(9) WHERE id % 5 = 2")
                case 4: try connection.execute("DELETE FROM t WHERE id % 7 = \(random.below(7))")
                case 5:
                    // Frames of a transaction that is rolled back stay in the log until they are overwritten.
                    try connection.executeScript(
                        """
                        PRAGMA cache_size = 5; BEGIN; CREATE TABLE r(a);
                        INSERT INTO r VALUES (randomblob(90000)); INSERT INTO t(a) SELECT randomblob(900) FROM t;
                        ROLLBACK
                        """)
                case 6: _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(PASSIVE)")
                case 7: _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(RESTART)")
                case 8: _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
                case 9: try connection.execute("VACUUM")
                case 10: try connection.executeScript(text: "CREATE TABLE x\(step)(a); PRAGMA user_version = \(step)")
                case 11: try app.connect()
                case 12 where app.connections.count > 1: app.disconnect(index)
                case 13...14: try connection.execute(Self.overwriting)
                default:
                    if let reader = readers.popLast() {
                        try reader.execute("COMMIT")
                        reader.close()
                    } else {
                        let reader = try app.connect()
                        app.forgetLast()
                        try reader.execute("BEGIN")
                        _ = try reader.value(Int.self, "SELECT count(*) FROM t")
                        readers.append(reader)
                    }
                }
            } catch let error as DatabaseError where error.isBusy {
                if connection.isInTransaction { try connection.execute("ROLLBACK") }
            }
            // The files that a kill at this moment leaves.
            let killed = try app.copies(database: app.bytes(), log: app.bytes("-wal"))
            #expect(try !Self.isRefused(killed, isEncrypted: isEncrypted), "step \(step)")
            looks += 1
        }
        for reader in readers { reader.close() }
        #expect(looks == 60)
    }

    /// The same numbers for the same seed.
    private struct Random {
        var state: UInt64

        mutating func below(_ bound: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state >> 33) % bound
        }
    }
}
