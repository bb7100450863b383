internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Indexes with contents that no table has: entries for missing rows, or the rows themselves.
struct MissingRowsTests {
    static let schemas = [
        "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(b DESC, a COLLATE NOCASE)",
        "CREATE TABLE t(a TEXT, b); CREATE UNIQUE INDEX i ON t(a) WHERE b > 5",
        "CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(length(a) || b)",
        "CREATE TABLE t(a TEXT PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX i ON t(b)",
    ].filter {
        // Old engines look up in the table what the condition of a partial index already implies.
        Engine.current.hasGeneratedColumns || !$0.contains("WHERE")
    }

    /// Fills a table and removes 250 rows that its index still names.
    private static func losingRows(_ schema: String, _ connection: Connection) throws {
        try connection.executeScript(
            text: schema + """
                ;
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
                INSERT INTO t(a, b) SELECT 'k' || i, i % 10 FROM n;
                CREATE TEMP TABLE entry AS SELECT * FROM sqlite_master WHERE name = 'i';
                """)
        try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'i'")
        try connection.executeScript("DELETE FROM t WHERE b = 7")
        try connection.editSchema("INSERT INTO sqlite_master SELECT * FROM entry")
    }

    private static let finding = "index i has entries for 250 rows that are not in table t"

    @Test("An encryption keeps the plaintext original if an index names missing rows", arguments: schemas)
    func keepsOriginal(schema: String) throws {
        let file = try LegacyFile { try Self.losingRows(schema, $0) }
        let original = try Data(contentsOf: URL(filePath: file.path))
        let earlier = Data("earlier".utf8)
        try earlier.write(to: URL(filePath: file.path + "-plaintext"))
        let before = try file.originalDump()
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.rebuiltIndexes == ["i"])
        #expect(report.backup == file.path + "-plaintext-2")
        #expect(try Data(contentsOf: URL(filePath: file.path + "-plaintext-2")) == original)
        #expect(try Data(contentsOf: URL(filePath: file.path + "-plaintext")) == earlier)
        #expect(report.warnings.contains { $0.hasPrefix(Self.finding) }, "\(report.warnings)")
        #expect(
            report.warnings.contains { $0.contains("plaintext original is kept as \(file.path)-plaintext-2") },
            "\(report.warnings)")
        let result = try file.dump(key: TestKeys.raw())
        #expect(result == before, "\(result.differences(from: before))")
        #expect(try file.read(key: TestKeys.raw()) { try $0.value(String.self, "PRAGMA integrity_check") } == "ok")
    }

    @Test("A shadow proof reports that the upgrade would keep the original, and keeps none itself")
    func shadow() throws {
        let file = try LegacyFile { try Self.losingRows(Self.schemas[0], $0) }
        let before = try FolderDigest(file.folder.url)
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).shadow()
        #expect(report.warnings.contains { $0.hasPrefix(Self.finding) }, "\(report.warnings)")
        #expect(report.warnings.contains { $0.contains("would keep the plaintext original") }, "\(report.warnings)")
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test("With onDamage set to refuse, missing rows are reported and nothing is changed", arguments: schemas)
    func refuses(schema: String) throws {
        let file = try LegacyFile { try Self.losingRows(schema, $0) }
        let before = try FolderDigest(file.folder.url)
        var options = ConversionOptions()
        options.onDamage = .refuse
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt)
        #expect(error.detail.hasPrefix(Self.finding), "\(error.detail)")
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test("An encryption of a database in use reports missing rows as any other encryption does", arguments: schemas)
    func reportsInUse(schema: String) throws {
        let file = try LegacyFile { try Self.losingRows(schema, $0) }
        let copy = try LegacyFile(copying: file.path)
        let atRest = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        let inUse = try copy.encryptInUse()
        #expect(inUse.damageWarnings == atRest.damageWarnings)
        #expect(inUse.warnings.contains { $0.hasPrefix(Self.finding) })
        #expect(inUse.rebuiltIndexes == atRest.rebuiltIndexes)
        #expect(inUse.backup != nil)
    }

    @Test("With onDamage set to refuse, an encryption of a database in use names the missing rows", arguments: schemas)
    func refusesInUse(schema: String) throws {
        let file = try LegacyFile { try Self.losingRows(schema, $0) }
        let finding = try file.refusalInUse(.refuse)
        #expect(finding.hasPrefix(Self.finding), "\(finding)")
    }

    @Test("A decryption is refused if an index names missing rows")
    func decryption() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        try LegacyFile.write(path, key: TestKeys.raw()) { try Self.losingRows(Self.schemas[0], $0) }
        let before = try FolderDigest(folder.url)
        let decryption = try Decryption(
            path: path, provider: TestKeys.provider(), formats: [CipherSettings()], options: ConversionOptions())
        let error = try #require(try storeError { try decryption.run() })
        #expect(error.code == .corrupt)
        #expect(error.detail.hasPrefix(Self.finding), "\(error.detail)")
        #expect(try FolderDigest(folder.url) == before)
    }

    // MARK: Swapped roots

    /// Swaps the root pages of a table WITHOUT ROWID and its index.
    private static func swappingRoots(_ index: String, _ connection: Connection) throws {
        try connection.executeScript(
            """
            CREATE TABLE t(k TEXT PRIMARY KEY, v, u UNIQUE) WITHOUT ROWID; CREATE INDEX i ON t(v);
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
            INSERT INTO t SELECT 'k' || i, 'v' || (i * 7 % 400), i FROM n;
            CREATE TEMP TABLE roots AS SELECT name, rootpage FROM sqlite_master;
            """)
        for (name, other) in [("t", index), (index, "t")] {
            try connection.editSchema(
                "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM roots WHERE name = '\(other)') "
                    + "WHERE name = '\(name)'")
        }
    }

    @Test(
        "A table WITHOUT ROWID that has its index's root is refused, and nothing is changed",
        arguments: ["i", "sqlite_autoindex_t_2"])
    func swappedRoots(index: String) throws {
        let file = try LegacyFile { try Self.swappingRoots(index, $0) }
        let before = try FolderDigest(file.folder.url)
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt)
        #expect(error.detail.contains("index \(index) of table t contains records with 3 values"), "\(error.detail)")
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test("A table WITHOUT ROWID that has its index's root is refused while the database is in use")
    func swappedRootsInUse() throws {
        let file = try LegacyFile { try Self.swappingRoots("i", $0) }
        let finding = try file.refusalInUse()
        #expect(finding.contains("index i of table t contains records with 3 values"), "\(finding)")
    }

    @Test("An encrypted table WITHOUT ROWID that has its index's root is refused too")
    func swappedRootsDecryption() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        try LegacyFile.write(path, key: TestKeys.raw()) { try Self.swappingRoots("i", $0) }
        let before = try FolderDigest(folder.url)
        let decryption = try Decryption(
            path: path, provider: TestKeys.provider(), formats: [CipherSettings()], options: ConversionOptions())
        let error = try #require(try storeError { try decryption.run() })
        #expect(error.code == .corrupt)
        #expect(error.detail.contains("index i of table t contains records with 3 values"), "\(error.detail)")
        #expect(try FolderDigest(folder.url) == before)
    }
}
