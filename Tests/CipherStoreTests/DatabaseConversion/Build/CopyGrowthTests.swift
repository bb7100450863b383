internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Copies whose rows take more bytes than those of the original.
struct CopyGrowthTests {
    /// Rows without a key, of which the first ones were deleted.
    private static func file(_ script: String) throws -> LegacyFile {
        try LegacyFile {
            try $0.executeScript(
                text: """
                    CREATE TEMP TABLE n(i INTEGER PRIMARY KEY);
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO temp.n SELECT i FROM n;
                    \(script);
                    DELETE FROM t WHERE rowid <= 10;
                    """)
        }
    }

    @Test("Whole numbers in columns of type REAL take no more bytes in the copy")
    func wholeReals() throws {
        let file = try Self.file(
            """
            CREATE TABLE t(a REAL, b DOUBLE, c FLOAT, d REAL, e REAL, f REAL, g REAL, h REAL, i REAL, j REAL);
            INSERT INTO t SELECT 0, i % 2, i % 100, 0, -0.0, 1, 0, 0, 0, 1 FROM n
            """)
        let before = try file.originalDump()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.bytesAfter < report.bytesBefore * 5 / 4)
        let result = try file.dump(key: TestKeys.raw())
        #expect(result == before, "\(result.differences(from: before))")
    }

    @Test("Text that looks like a number stays text in a column whose type was changed to REAL")
    func texts() throws {
        let file = try LegacyFile {
            try $0.executeScript(
                "CREATE TABLE t(a TEXT, b REAL, c REAL); INSERT INTO t(rowid, a, b, c) VALUES (7, '12', 3, 'x'), (9, '1.50', 4, 5)"
            )
            try $0.editSchema("UPDATE sqlite_master SET sql = 'CREATE TABLE t(a REAL, b REAL, c REAL)'")
        }
        let before = try file.originalDump()
        _ = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        let result = try file.dump(key: TestKeys.raw())
        #expect(result == before, "\(result.differences(from: before))")
    }

    @Test("A table whose rows lack a column with a long default is converted and not considered endless")
    func addedColumn() throws {
        let file = try Self.file(
            """
            CREATE TABLE t(a); INSERT INTO t SELECT i FROM n;
            ALTER TABLE t ADD COLUMN b DEFAULT '\(String(repeating: "x", count: 500))'
            """)
        let rows = "SELECT count(*) || ' ' || min(rowid) || ' ' || sum(length(b)) FROM t"
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted)
        #expect(report.rows == 29_990)
        #expect(
            try file.read(key: TestKeys.raw()) { try $0.value(String.self, SQL(text: rows)) } == "29990 11 14995000")
    }
}
