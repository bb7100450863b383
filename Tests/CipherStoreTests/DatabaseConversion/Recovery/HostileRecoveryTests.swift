internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Malicious or truncated files.
///
/// Each recovery ends with a typed error or a proven database, and leaves no other file.
@Suite struct HostileRecoveryTests {
    private func outcome(_ fixture: RecoveryFixture, _ bytes: [UInt8]) throws -> StoreError.Code? {
        try Data(bytes).write(to: URL(filePath: fixture.path))
        let before = try FolderDigest(fixture.folder.url)
        do {
            try fixture.recover()
            try FileManager.default.removeItem(atPath: fixture.output)
            return nil
        } catch let error as StoreError {
            #expect(try FolderDigest(fixture.folder.url) == before)
            return error.code
        }
    }

    @Test("Empty, short, truncated and endless files end with a typed error or a database")
    func sizes() throws {
        let fixture = try RecoveryFixture()
        let healthy = [UInt8](try Data(contentsOf: URL(filePath: fixture.path)))
        #expect(try outcome(fixture, []) == .corrupt)
        #expect(try outcome(fixture, Array(healthy.prefix(100))) == .corrupt)
        #expect(try outcome(fixture, Array(healthy.prefix(1024))) == nil)
        #expect(try outcome(fixture, Array(healthy.prefix(50_000))) == nil)
        #expect(try outcome(fixture, Array(healthy.prefix(50_333))) == nil)
        #expect(try outcome(fixture, [UInt8](repeating: 0, count: 4096)) == .keyDoesNotFit)
        #expect(try outcome(fixture, [UInt8](repeating: 0xff, count: 65_536)) == .keyDoesNotFit)
    }

    @Test("A file with flipped bits or cyclic pages is recovered into a proven database", arguments: 0..<12)
    func bits(seed: Int) throws {
        let fixture = try RecoveryFixture(pageSize: 512, script: Self.small)
        let healthy = [UInt8](try Data(contentsOf: URL(filePath: fixture.path)))
        var random = SeededRandom(seed: UInt64(seed))
        for _ in 0..<6 {
            var bytes = healthy
            for _ in 0...random.below(40) {
                // Most changes are at the beginnings of pages, where the pointers are.
                let page = random.below(bytes.count / 512)
                bytes[page * 512 + (random.oneIn(2) ? random.below(40) : random.below(512))] ^= UInt8(
                    1 << random.below(8))
            }
            if random.oneIn(2) {
                for page in stride(from: 512, to: bytes.count, by: 512) where bytes[page] == 5 {
                    bytes[page + 11] = UInt8(page / 512)
                }
            }
            let code = try outcome(fixture, bytes)
            #expect(code == nil || code == .keyDoesNotFit, "\(String(describing: code))")
        }
    }

    private static let small = """
        CREATE TABLE a(id INTEGER PRIMARY KEY, t TEXT, b BLOB); CREATE INDEX a_t ON a(t);
        CREATE TABLE k(n INTEGER, t TEXT, PRIMARY KEY(n)) WITHOUT ROWID;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
            INSERT INTO a SELECT i, 'text ' || i, CASE i % 20 WHEN 0 THEN randomblob(2000) END FROM n;
        INSERT INTO k SELECT id, t FROM a;
        """

    @Test("A taken name, a missing folder and a canceled run leave everything unchanged")
    func refusals() throws {
        let fixture = try RecoveryFixture()
        let before = try FolderDigest(fixture.folder.url)
        func code(_ output: String, _ options: ConversionOptions = ConversionOptions()) throws -> StoreError.Code? {
            try storeError {
                _ = try DatabaseRecovery(
                    of: DatabasePaths(fixture.path), provider: TestKeys.provider(), formats: [CipherSettings()],
                    to: output, targetProvider: nil, template: nil, options: options
                ).run()
            }?.code
        }
        #expect(try code(fixture.path) == .nameTaken)
        #expect(try code(fixture.path + "-wal") == .nameTaken)
        #expect(try code(fixture.folder.path("none/new.db")) == .missingFile)
        var options = ConversionOptions()
        let cancellation = UpgradeCancellation()
        options.cancellation = cancellation
        options.progress = { if $0.stage == .proving { cancellation.cancel() } }
        #expect(try code(fixture.output, options) == .cancelled)
        #expect(try FolderDigest(fixture.folder.url) == before)
    }
}
