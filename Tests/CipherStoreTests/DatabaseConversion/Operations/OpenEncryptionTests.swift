internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// The encryption of a database while others write to it, round by round.
@Suite(.timeLimit(.minutes(20)))
struct OpenEncryptionTests {
    /// A database in WAL mode, with an app's connection to it.
    private struct Subject {
        let folder: TemporaryFolder
        let app: Connection
        var path: String { folder.path("app.db") }

        init(_ script: String) throws {
            folder = try TemporaryFolder()
            // A checkpoint that restarts the log waits in vain for the connection that follows the database, so the
            // timeout is short.
            app = try Connection(path: folder.path("app.db"), mode: .create, busyTimeout: .milliseconds(20))
            try app.executeScript(text: script)
            _ = try app.value(String.self, "PRAGMA journal_mode = WAL")
        }

        /// Runs the first step.
        func prepared() throws -> OpenEncryption {
            let encryption = try OpenEncryption(
                DatabasePaths(path), provider: TestKeys.provider(), options: ConversionOptions())
            try encryption.prepare(UpgradeCancellation(), resting: {}) {
                try LockedWriter(path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
            }
            return encryption
        }

        /// Encrypts the database, and calls `write` before each round.
        ///
        /// - Returns: The database before its last step, and afterwards.
        func encrypt(
            _ write: (Int, Connection) throws -> Void
        ) throws -> (before: DatabaseDump, after: DatabaseDump, report: EncryptionReport) {
            let paths = try DatabasePaths(path)
            let encryption = try OpenEncryption(paths, provider: TestKeys.provider(), options: ConversionOptions())
            var round = 0
            let cancellation = UpgradeCancellation()
            try withoutActuallyEscaping(write) { write in
                func hold() throws -> any WriterHold {
                    try write(round, app)
                    round += 1
                    return try LockedWriter(path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
                }
                try encryption.prepare(cancellation, resting: {}, holdingWriters: hold)
                // Changes after the last round are left for the last step.
                try write(round, app)
            }
            let before = try DatabaseDump(app)
            let version = try app.value(Int.self, "PRAGMA schema_version") ?? 0
            app.close()
            var key: FileKey?
            let report = try encryption.finish(&key, cancellation)
            let fileKey = try #require(key)
            let connection = try Connection(
                path: path, mode: .readWrite, key: fileKey.key, settings: fileKey.settings, busyTimeout: .seconds(5))
            #expect(try connection.values(String.self, "PRAGMA integrity_check") == ["ok"])
            // The history is created at the end.
            try connection.executeScript(text: "DROP TABLE cipherstore_history; PRAGMA schema_version = \(version)")
            let after = try DatabaseDump(connection)
            connection.close()
            #expect(try folder.names == ["app.db"])
            return (before, after, report)
        }
    }

    /// What an app's database contains and what the app writes, for each unusual feature.
    static let cases: [(name: String, script: String, changes: [String])] = [
        (
            "rows of all kinds",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT, c REAL); CREATE INDEX i ON t(b); \(fill("t(a, b, c)", "1, 'x' || i, i / 3.0", 5_000))",
            [
                "INSERT INTO t(a, b) VALUES (1.0, 'new')", "UPDATE t SET a = 1.0 WHERE id % 500 = 0",
                "DELETE FROM t WHERE id BETWEEN 1000 AND 2500", "UPDATE t SET b = b || '!' WHERE id > 4500",
                "DELETE FROM t", "INSERT INTO t VALUES (9223372036854775807, 1, 2, 3), (-5, 1, 2, 3)",
            ]
        ),
        (
            "one row among many",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); \(fill("t(a)", "printf('%0200d', i)", 3_000))",
            [
                "UPDATE t SET a = 'one' || substr(a, 4) WHERE id = 1500",
                "UPDATE t SET a = 'two' || substr(a, 4) WHERE id = 700",
            ]
        ),
        (
            "case and storage class alone",
            "CREATE TABLE t(a TEXT COLLATE NOCASE UNIQUE, b); INSERT INTO t VALUES ('one', 1), ('two', 2)",
            ["UPDATE t SET a = upper(a)", "UPDATE t SET b = '1' WHERE b = 1", "UPDATE t SET b = 2.0 WHERE b = 2"]
        ),
        (
            "a unique value that changes its row",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')",
            ["UPDATE t SET a = NULL; UPDATE t SET a = 'y' WHERE id = 1; UPDATE t SET a = 'x' WHERE id = 2"]
        ),
        (
            "an overflow page alone",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, replace(zeroblob(20000), x'00', 'ab')); \(fill("t(a)", "zeroblob(9000)", 100))",
            [
                "UPDATE t SET a = substr(a, 1, 39990) || 'changed!!!' WHERE id = 1",
                "UPDATE t SET a = CAST(substr(a, 1, 8999) || 'x' AS BLOB) WHERE id = 50",
            ]
        ),
        (
            "leaves that go and come",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); \(fill("t(a)", "zeroblob(700)", 3_000))",
            [
                "DELETE FROM t WHERE id BETWEEN 1000 AND 1100", "DELETE FROM t WHERE id > 2900",
                "DELETE FROM t WHERE id < 300", "INSERT INTO t SELECT id + 5000, a FROM t WHERE id < 600",
                "DELETE FROM t WHERE id % 7 > 0",
            ]
        ),
        (
            "tables without rowid and counts of rowids",
            "CREATE TABLE k(a TEXT, b, PRIMARY KEY(a DESC, b)) WITHOUT ROWID; CREATE TABLE n(id INTEGER PRIMARY KEY AUTOINCREMENT, a); \(fill("k", "'k' || i, randomblob(i % 3000)", 500)); \(fill("n(a)", "i", 50))",
            [
                "UPDATE k SET b = 1 WHERE a LIKE '%7'; INSERT INTO n(a) VALUES (1)", "DELETE FROM n",
                "INSERT INTO n(a) VALUES (2); DELETE FROM k WHERE a > 'k3'", "DELETE FROM sqlite_sequence",
            ]
        ),
        (
            "full-text tables",
            "CREATE VIRTUAL TABLE f USING fts4(a); \(fill("f(a)", "'word' || i || ' and ' || (i * 7)", 500))",
            [
                "INSERT INTO f(a) VALUES ('more words')", "DELETE FROM f WHERE docid < 100",
                "INSERT INTO f(f) VALUES ('optimize')",
            ]
        ),
        (
            "header fields, and moved pages",
            "PRAGMA auto_vacuum = 2; CREATE TABLE t(a); \(fill("t", "zeroblob(900)", 2_000)); CREATE TABLE u(a); \(fill("u", "zeroblob(9000)", 100))",
            [
                "PRAGMA user_version = 77; PRAGMA application_id = 4711", "DELETE FROM t WHERE rowid < 1500",
                "PRAGMA incremental_vacuum", "INSERT INTO u VALUES (zeroblob(90000))",
            ]
        ),
        (
            "a table that is dropped",
            "CREATE TABLE t(a); \(fill("t", "zeroblob(900)", 500)); CREATE TABLE u(a); \(fill("u", "zeroblob(9000)", 50))",
            ["DROP TABLE t; INSERT INTO u SELECT zeroblob(30000) FROM u"]
        ),
        (
            "roots that a VACUUM moves",
            "CREATE TABLE s(a); \(fill("s", "zeroblob(900)", 500)); CREATE TABLE t(a); \(fill("t", "zeroblob(900)", 500)); DELETE FROM s",
            ["VACUUM"]
        ),
        (
            "small pages of UTF-16",
            "PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = 512; CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a); \(fill("t", "'Käse' || i, i", 3_000))",
            ["UPDATE t SET a = 'é' || a WHERE rowid % 50 = 0", "DELETE FROM t WHERE rowid > 2000"]
        ),
        (
            "triggers, keys of other tables, checks, computed columns",
            """
            CREATE TABLE p(id INTEGER PRIMARY KEY, a CHECK (a <> 'never')); CREATE TABLE c(p REFERENCES p ON DELETE CASCADE, n DEFAULT 0);
            CREATE TRIGGER g AFTER UPDATE ON p BEGIN INSERT INTO c VALUES (new.id, 1); END; \(fill("p(a)", "i", 300));
            """,
            ["UPDATE p SET a = 'x' WHERE id < 10", "DELETE FROM p WHERE id = 5", "INSERT INTO p(a) VALUES (NULL)"]
        ),
    ]

    /// Returns a statement that inserts computed rows.
    private static func fill(_ table: String, _ values: String, _ count: Int) -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count)) INSERT INTO \(table) SELECT \(values) FROM n;
        """
    }

    @Test(
        "Rows written between two rounds are in the copy, with their storage classes",
        arguments: cases.map(\.name), [false, true])
    func between(name: String, isTruncated: Bool) throws {
        let (_, script, changes) = try #require(Self.cases.first { $0.name == name })
        let subject = try Subject(script)
        var left = changes[...]
        let (before, after, report) = try subject.encrypt { round, app in
            if round > 0, let change = left.popFirst() { try app.executeScript(text: change) }
            // The log restarts between two rounds.
            if isTruncated { try app.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
            if round == 3 { while let change = left.popFirst() { try app.executeScript(text: change) } }
        }
        #expect(left.isEmpty)
        #expect(after == before, "\(after.differences(from: before))")
        #expect(report.outcome == .encrypted)
    }

    /// Statements after which the log contains committed frames without a checksum.
    ///
    /// The cache is too small for the written pages, and a savepoint is rolled back.
    static let unsealed = """
        PRAGMA cache_size = 5;
        BEGIN; INSERT OR REPLACE INTO t VALUES (19, zeroblob(448), 241618); SAVEPOINT s;
        INSERT OR REPLACE INTO t VALUES (35, zeroblob(1984), 636957);
        INSERT OR REPLACE INTO t VALUES (23, zeroblob(3725), 682346);
        INSERT OR REPLACE INTO t VALUES (38, zeroblob(3457), 523963); ROLLBACK TO s;
        INSERT OR REPLACE INTO t VALUES (8, zeroblob(2572), 905050); COMMIT;
        """

    @Test("An index that does not match its rows is rebuilt from them, and the report names it")
    func damagedIndex() throws {
        let subject = try Subject(
            "CREATE TABLE t(a TEXT, b TEXT); CREATE INDEX i ON t(a); \(Self.fill("t", "'a' || i, 'b' || (i * 7 % 500)", 500))"
        )
        try subject.app.editSchema("UPDATE sqlite_master SET sql = replace(sql, '(a)', '(b)') WHERE name = 'i'")
        let (before, after, report) = try subject.encrypt { round, app in
            try app.execute("INSERT INTO t VALUES ('new', \("round \(round)"))")
        }
        #expect(before == after)
        #expect(report.rebuiltIndexes == ["i"])
        #expect(
            report.warnings.besidesLeases.allSatisfy { $0.hasPrefix("a damaged index was rebuilt from the rows: ") })
        #expect(!report.warnings.besidesLeases.isEmpty)
    }

    @Test("Frames that SQLite commits beyond the log's running checksums are in the copy", arguments: [1, 2, 3])
    func unsealed(round: Int) throws {
        let subject = try Subject(
            "PRAGMA page_size = 512; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE)")
        var isUnsealed = false
        let (before, after, _) = try subject.encrypt { number, app in
            guard number == round else { return }
            try app.executeScript(text: Self.unsealed)
            let log = try #require(try SidecarFile(subject.path + "-wal"))
            let sealed = try LogHeader(log)?.committedPages(in: log)?.offsets.values.max() ?? 0
            try app.pinSnapshot()
            let committed = try #require(try app.logState()).frameCount
            try app.execute("COMMIT")
            isUnsealed = sealed < Int64(committed - 2) * 536
            try app.execute("INSERT INTO t VALUES (NULL, 'later', NULL)")
        }
        try #require(isUnsealed)
        #expect(after == before, "\(after.differences(from: before))")
    }

    /// Changes an entry in a schema of several pages, of which the first one stays the same.
    private static let changedInPlace = """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, '''one''', '''two''') WHERE name = 't59';
        PRAGMA writable_schema = OFF;
        """

    private static let manyTables =
        "PRAGMA page_size = 1024; "
        + (0..<60).map { "CREATE TABLE t\($0)(a TEXT NOT NULL, b DEFAULT 'one');" }.joined()

    @Test("A schema change that leaves the schema's first page unchanged is in the copy", arguments: [1, 2])
    func schemaInPlace(round: Int) throws {
        let subject = try Subject(Self.manyTables)
        let (before, after, _) = try subject.encrypt { number, app in
            if number == round { try app.executeScript(text: Self.changedInPlace) }
        }
        #expect(after == before, "\(after.differences(from: before))")
    }

    @Test("A schema change after the last round that leaves the first page unchanged postpones the last step")
    func schemaInPlaceAtLast() throws {
        let subject = try Subject(Self.manyTables)
        let encryption = try subject.prepared()
        try subject.app.executeScript(text: Self.changedInPlace)
        subject.app.close()
        var key: FileKey?
        let error = try #require(throws: StoreError.self) { try encryption.finish(&key, UpgradeCancellation()) }
        #expect(error.code == .busy)
        let connection = try Connection(path: subject.path, mode: .readWrite)
        defer { connection.close() }
        let sql = try connection.value(String.self, "SELECT sql FROM sqlite_master WHERE name = 't59'")
        #expect(sql?.contains("two") == true)
    }

    @Test("If the last step is abandoned, commits that the log cannot show after a crash are kept")
    func unsealedAtLast() throws {
        let subject = try Subject("PRAGMA page_size = 512; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE)")
        let encryption = try subject.prepared()
        try subject.app.executeScript(text: Self.unsealed + "CREATE TABLE later(a)")
        let before = try DatabaseDump(subject.app)
        subject.app.close()
        var key: FileKey?
        let error = try #require(throws: StoreError.self) { try encryption.finish(&key, UpgradeCancellation()) }
        #expect(error.code == .busy)
        encryption.end()
        let connection = try Connection(path: subject.path, mode: .readWrite)
        defer { connection.close() }
        let after = try DatabaseDump(connection)
        #expect(after == before, "\(after.differences(from: before))")
    }

    @Test("A value longer than the whole earlier database is in the copy")
    func longValue() throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let (before, after, _) = try subject.encrypt { number, app in
            if number == 2 { try app.execute("INSERT INTO t VALUES (zeroblob(17000000))") }
        }
        #expect(after == before, "\(after.differences(from: before).map { $0.prefix(100) })")
    }

    @Test("If much was written after the last round, the last step is postponed, and the copy is kept")
    func largeDelta() throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let encryption = try OpenEncryption(
            DatabasePaths(subject.path), provider: TestKeys.provider(), options: ConversionOptions())
        let cancellation = UpgradeCancellation()
        func prepare() throws {
            try encryption.prepare(cancellation, resting: {}) {
                try LockedWriter(subject.path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
            }
        }
        try prepare()
        try subject.app.executeScript(text: Self.fill("t", "zeroblob(900)", 8_000))
        subject.app.close()
        var key: FileKey?
        let error = try #require(throws: StoreError.self) { try encryption.finish(&key, cancellation) }
        #expect(error.code == .busy)
        #expect(encryption.hasCopy)
        try prepare()
        #expect(try encryption.finish(&key, cancellation).outcome == .encrypted)
        #expect(try subject.folder.names == ["app.db"])
    }

    @Test("If another file takes the database's place, the encryption ends without waiting for the former file")
    func replaced() throws {
        let subject = try Subject("CREATE TABLE t(a)")
        let encryption = try OpenEncryption(
            DatabasePaths(subject.path), provider: TestKeys.provider(), options: ConversionOptions())
        defer { encryption.end() }
        let other = subject.folder.path("other.db")
        try FileManager.default.copyItem(atPath: subject.path, toPath: other)
        var round = 0
        let error = try #require(throws: StoreError.self) {
            try encryption.prepare(UpgradeCancellation(), resting: {}) {
                if round == 2 { #expect(rename(other, subject.path) == 0) }
                round += 1
                return try LockedWriter(subject.path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
            }
        }
        #expect(round == 3)
        #expect(error.code == .replaced)
    }

    @Test("A database that is not in WAL mode is refused with advice, and stays unchanged")
    func rollbackMode() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        try LegacyFile.write(path, script: "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let before = try FolderDigest(folder.url)
        let encryption = try OpenEncryption(
            DatabasePaths(path), provider: TestKeys.provider(), options: ConversionOptions())
        let error = try #require(throws: StoreError.self) {
            try encryption.prepare(UpgradeCancellation(), resting: {}) {
                try LockedWriter(path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
            }
        }
        #expect(error.code == .configuration)
        #expect(error.detail.contains("WAL mode"))
        #expect(error.advice.contains("encryption.when"))
        #expect(try FolderDigest(folder.url) == before)
    }
}
