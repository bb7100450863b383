internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
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

    private static func rows(
        _ path: String, _ settings: CipherSettings, key: CipherKey? = try? TestKeys.raw()
    ) throws -> [String] {
        let connection =
            try key.map { try Connection(path: path, mode: .readOnly, key: $0, settings: settings) }
            ?? Connection(path: path, mode: .readOnly)
        defer { connection.close() }
        return try rows(connection)
    }

    private static func rows(_ connection: Connection) throws -> [String] {
        try ["SELECT a || b FROM t ORDER BY a", "SELECT hex(a) FROM long ORDER BY rowid"].flatMap {
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
                #expect(!report.rebuiltIndexes.isEmpty || !report.warnings.besidesLeases.isEmpty, "page \(page)")
                #expect(try Self.rows(folder.path("copy.db"), settings) == rows, "page \(page)")
                try FileManager.default.removeItem(atPath: folder.path("copy.db"))
            } catch let error as StoreError {
                #expect(error.code == .corrupt, "page \(page): \(error)")
            }
            #expect(try FolderDigest(folder.url) == before)
        }
    }

    fileprivate enum Command: CaseIterable {
        case rekey, decrypt, restore

        /// Replaces the database, and returns its rows.
        func rows(_ folder: TemporaryFolder, _ settings: CipherSettings) throws -> [String] {
            let (path, options) = (folder.path("app.db"), ConversionOptions())
            let paths = try DatabasePaths(path)
            switch self {
            case .rekey:
                _ = try Rekeying(
                    at: paths, oldKey: TestKeys.provider(), newKey: TestKeys.provider { try TestKeys.raw(8) },
                    formats: [settings], newSettings: CipherSettings(), options: options
                ).run()
                return try ZeroedPageTests.rows(path, CipherSettings(), key: TestKeys.raw(8))
            case .decrypt:
                _ = try Decryption(paths, provider: TestKeys.provider(), formats: [settings], options: options).run()
                return try ZeroedPageTests.rows(path, settings, key: nil)
            case .restore:
                try FileManager.default.moveItem(atPath: path, toPath: folder.path("backup.db"))
                defer { try? FileManager.default.removeItem(atPath: folder.path("backup.db")) }
                do {
                    _ = try DatabaseRestore(
                        of: folder.path("backup.db"), backupProvider: nil, to: paths, provider: TestKeys.provider(),
                        formats: [CipherSettings()], backupFormats: [settings], allowsPlaintext: false,
                        options: options
                    ).run()
                } catch {
                    try FileManager.default.moveItem(atPath: folder.path("backup.db"), toPath: path)
                    throw error
                }
                return try ZeroedPageTests.rows(path, CipherSettings(), key: TestKeys.raw())
            }
        }
    }

    @Test(
        "No conversion or restore takes a zeroed page for a part of a row", arguments: formats, Command.allCases)
    fileprivate func otherWays(settings: CipherSettings, command: Command) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let path = folder.path("app.db")
        try LegacyFile.write(path, key: TestKeys.raw(), settings: settings, script: Self.script)
        let whole = try Data(contentsOf: URL(filePath: path))
        let rows = try Self.rows(path, settings)
        let size = settings.pageSize
        var refused = 0
        for page in 2...(whole.count / size) {
            var data = whole
            data.replaceSubrange((page - 1) * size..<page * size, with: Data(count: size))
            try data.write(to: URL(filePath: path))
            let before = try FolderDigest(folder.url)
            do {
                #expect(try command.rows(folder, settings) == rows, "page \(page)")
            } catch let error as StoreError {
                #expect(error.code == .corrupt, "page \(page): \(error)")
                #expect(try FolderDigest(folder.url) == before, "page \(page)")
                refused += 1
            }
        }
        #expect(refused > 1)
    }

    @Test("A store's reader does not take a zeroed page for a part of a row")
    func store() async throws {
        let fixture = StoreFixture(try TemporaryFolder(inMemory: true))
        let store = try await fixture.open()
        try await store.write { try $0.executeScript(text: Self.script) }
        let rows = try await store.read { try Self.rows($0) }
        await store.close()
        let file = URL(filePath: fixture.path)
        let whole = try Data(contentsOf: file)
        let size = CipherSettings().pageSize
        var refused = 0
        for page in 2...(whole.count / size) {
            var data = whole
            data.replaceSubrange((page - 1) * size..<page * size, with: Data(count: size))
            try data.write(to: file)
            guard let damaged = try? await fixture.open() else { continue }
            let read = try? await damaged.read { try Self.rows($0) }
            #expect(read == nil || read == rows, "page \(page)")
            refused += read == nil ? 1 : 0
            await damaged.close()
        }
        #expect(refused > 1)
    }
}
