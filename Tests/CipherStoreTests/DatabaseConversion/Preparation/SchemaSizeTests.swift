internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// Schemas with so many entries that an upgrade would take too long.
struct SchemaSizeTests {
    private func file(views: Int, table: String = "CREATE TABLE t(a)") throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            try connection.executeScript(
                text: """
                    PRAGMA journal_mode = WAL; \(table); PRAGMA writable_schema = ON;
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(views))
                    INSERT INTO sqlite_master
                    SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT a FROM t' FROM n;
                    PRAGMA schema_version = 99
                    """)
        }
    }

    @Test func `More views than a file of its size can need are refused, and nothing is touched`() throws {
        let file = try file(views: 40_000)
        let before = try file.digest()
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        let error = try #require(throws: StoreError.self) { try upgrade.run() }
        #expect(error.code == .corrupt)
        #expect(error.detail.contains("entries"))
        #expect(try file.digest() == before)
    }

    @Test func `As many views are read where the file has the room for them`() throws {
        let rows = "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(2000000))"
        let file = try file(views: 5_500, table: rows)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted)
    }
}
