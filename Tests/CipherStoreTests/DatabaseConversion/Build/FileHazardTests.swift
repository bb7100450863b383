internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Page sizes, numbers in the header, journal modes, and files of a killed app.
struct FileHazardTests {
    @Test(
        "Files of every page size are converted completely",
        arguments: [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
    func pageSize(size: Int) throws {
        for autoVacuum in 0...2 {
            try Hazard("page size", "PRAGMA page_size = \(size); PRAGMA auto_vacuum = \(autoVacuum); \(Self.content)")
                .run()
        }
    }

    @Test("Header numbers and journal modes are kept", arguments: Self.files)
    func encryptFile(hazard: Hazard) throws {
        try hazard.run()
    }

    @Test("Every cipher setting keeps the same rows", arguments: [3, 4])
    func formats(format: Int) throws {
        guard format <= Engine.current.defaultCompatibility else { return }
        try Hazard("format", Self.content).run(settings: CipherSettings(compatibility: format))
    }

    @Test("A hot journal of a killed writer is rolled back, and its uncommitted rows are not encrypted")
    func hotJournal() throws {
        let file = try Self.killedWriter.run()
        let rows = try file.read(key: TestKeys.raw()) {
            try $0.value(Int.self, "SELECT count(*) FROM t WHERE a = 'committed'")
        }
        #expect(rows == 200)
    }

    @Test("A journal of several segments is rolled back, whatever is between the segments")
    func segmentedJournal() throws {
        // Rows of 00 00 00 01 look like the number of page 1 if records are read at wrong offsets.
        let file = try LegacyFile(unclosed: true) { connection in
            try connection.executeScript(
                """
                CREATE TABLE t(a); CREATE TABLE u(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                    INSERT INTO t SELECT CAST(replace(hex(zeroblob(60)), '00', char(0, 0, 0, 1)) AS BLOB) FROM n;
                PRAGMA cache_size = 10; PRAGMA cache_spill = 10;
                BEGIN; UPDATE t SET a = CAST(replace(hex(zeroblob(60)), '00', char(0, 0, 0, 2)) AS BLOB);
                """)
        }
        #expect(try file.folder.names == ["app.db", "app.db-journal"])
        let original = try file.originalDump()
        _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(try file.dump(key: TestKeys.raw()) == original)
    }

    @Test("A table with rows out of order is refused as damaged and left unchanged")
    func rowsOutOfOrder() throws {
        let file = try LegacyFile {
            try $0.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES ('x'), ('y'), ('z')")
        }
        // The leaf of the table is page 2. After its header of 8 bytes are the offsets of its cells, two bytes each.
        let page = try DatabaseFile(path: file.path, access: .readWrite)
        let places = try page.read(at: 4_096 + 8, count: 4)
        try page.write([places[2], places[3], places[0], places[1]], at: 4_096 + 8)
        page.close()
        let before = try file.digest()
        let error = try #require(
            #expect(throws: StoreError.self) {
                try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
            })
        #expect(error.code == .corrupt)
        #expect(try file.digest() == before)
    }

    private static let content: String = """
        CREATE TABLE t(a TEXT, b BLOB); CREATE INDEX i ON t(a);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO t SELECT 'row ' || i, zeroblob(i * 40) FROM n;
        CREATE TABLE bare(a); INSERT INTO bare(rowid, a) VALUES (9, zeroblob(100000)), (-1, 'x'); DELETE FROM t WHERE rowid % 5 = 0;
        """

    private static let killedWriter: Hazard = Hazard("a killed writer", unclosed: true) { connection in
        try connection.executeScript(
            """
            CREATE TABLE t(a, b);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO t SELECT 'committed', zeroblob(3000) FROM n;
            PRAGMA cache_size = 5; PRAGMA cache_spill = 5; BEGIN; UPDATE t SET a = 'lost', b = zeroblob(4000);
            """)
    }

    private static let files: [Hazard] =
        [
            Hazard("no tables and a user_version", "PRAGMA user_version = 7; PRAGMA application_id = -5;"),
            Hazard("no tables any more", "CREATE TABLE t(a); DROP TABLE t;"),
            Hazard("no tables, UTF-16", "PRAGMA encoding = 'UTF-16be'; PRAGMA user_version = 1;"),
            Hazard("no tables, auto_vacuum", "PRAGMA auto_vacuum = 2; PRAGMA user_version = -2147483648;"),
            Hazard(
                "extreme numbers",
                "CREATE TABLE t(a); PRAGMA user_version = -1; PRAGMA application_id = 2147483647; PRAGMA schema_version = -7;"
            ),
            Hazard("a default cache size", "CREATE TABLE t(a); PRAGMA default_cache_size = 1234;"),
            Hazard("incremental vacuum with free pages", "PRAGMA auto_vacuum = 2; \(content) DELETE FROM bare;"),
            Hazard("journal_mode PERSIST", unclosed: true, "PRAGMA journal_mode = PERSIST; \(content)"),
            Hazard("journal_mode TRUNCATE", unclosed: true, "PRAGMA journal_mode = TRUNCATE; \(content)"),
            Hazard("journal_mode WAL, closed", "PRAGMA journal_mode = WAL; \(content)"),
            Hazard(
                "journal_mode WAL with rows in the log alone", unclosed: true,
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; \(content)"),
            Hazard(
                "journal_mode WAL, checkpointed in part and begun anew", unclosed: true,
                "PRAGMA journal_mode = WAL; \(content) PRAGMA wal_checkpoint; INSERT INTO bare VALUES ('after'); BEGIN; INSERT INTO bare VALUES ('open');"
            ),
        ]
}
