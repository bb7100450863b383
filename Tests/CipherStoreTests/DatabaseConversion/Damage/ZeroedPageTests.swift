internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Encrypted files with a page of zeros, which SQLCipher accepts in place of an authentic page.
struct ZeroedPageTests {
    private static let script = """
        CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t(b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO t SELECT i, 'row ' || i FROM n;
        CREATE TABLE long(a); INSERT INTO long VALUES (randomblob(9000)), (randomblob(30000));
        """

    private static let formats = CipherSettings.authenticated()

    private func backup(_ folder: TemporaryFolder, _ settings: CipherSettings) throws -> EncryptionReport {
        try FileBackup(
            of: DatabasePaths(folder.path("app.db")), provider: TestKeys.provider(), formats: [settings],
            to: folder.path("copy.db"), backupProvider: nil, options: ConversionOptions()
        ).run()
    }

    private static func rows(_ path: String, _ settings: CipherSettings) throws -> [String] {
        let connection = try Connection(path: path, mode: .readOnly, key: TestKeys.raw(), settings: settings)
        defer { connection.close() }
        return try ["SELECT a || b FROM t ORDER BY a", "SELECT hex(a) FROM long ORDER BY rowid"].flatMap {
            try connection.values(String.self, SQL(text: $0))
        }
    }

    @Test("A file with a zeroed page that a row depends on is damaged, and is not copied", arguments: formats)
    func copies(settings: CipherSettings) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let path = folder.path("app.db")
        try LegacyFile.write(path, key: TestKeys.raw(), settings: settings, script: Self.script)
        let whole = try Data(contentsOf: URL(filePath: path))
        let rows = try Self.rows(path, settings)
        let size = settings.pageSize
        for page in 2...(whole.count / size) {
            var data = whole
            data.replaceSubrange((page - 1) * size..<page * size, with: Data(count: size))
            try data.write(to: URL(filePath: path))
            let before = try FolderDigest(folder.url)
            let found = try Verification.run(
                at: DatabasePaths(path), provider: TestKeys.provider(), formats: [settings])
            #expect(!found.isSound, "page \(page)")
            do {
                let report = try backup(folder, settings)
                #expect(!report.rebuiltIndexes.isEmpty || !report.warnings.isEmpty, "page \(page)")
                #expect(try Self.rows(folder.path("copy.db"), settings) == rows, "page \(page)")
                try FileManager.default.removeItem(atPath: folder.path("copy.db"))
            } catch let error as StoreError {
                #expect(error.code == .corrupt, "page \(page): \(error)")
            }
            #expect(try FolderDigest(folder.url) == before)
        }
    }
}
