internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Hot journals from which SQLite would restore only some of the pages.
@Suite struct DamagedJournalTests {
    /// Returns a database with an unfinished transaction, whose journal has a wrong byte in its first record.
    private static func file() throws -> (damaged: LegacyFile, before: [UInt8], intactJournal: [UInt8]) {
        var before: [UInt8] = []
        let file = try LegacyFile(unclosed: true) { connection in
            try connection.executeScript(
                """
                PRAGMA page_size = 4096; PRAGMA cache_size = 10; CREATE TABLE t(a INTEGER PRIMARY KEY, b);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO t SELECT i, 'old' || hex(zeroblob(250)) FROM n;
                """)
            try connection.forEachRow("PRAGMA database_list") { before = try bytes($0.get(String.self, at: 2)) }
            try connection.executeScript("BEGIN; UPDATE t SET b = 'new' || substr(b, 4)")
        }
        let journal = try bytes(file.path + "-journal")
        var damaged = journal
        damaged[512 + 4 + 4096 - 200] ^= 0xff
        try write(damaged, file.path + "-journal")
        return (file, before, journal)
    }

    private static func bytes(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

    private static func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    private static func isDamaged(_ journal: [UInt8], of database: [UInt8]) throws -> Bool {
        let journal = HeldBytes(journal)
        return try #require(try JournalHeader(journal)).isDamaged(in: journal, of: HeldBytes(database))
    }

    @Test("A damaged hot journal is refused, and nothing is changed", arguments: [OnDamage.rebuildIndexes, .refuse])
    func refused(onDamage: OnDamage) throws {
        let file = try Self.file().damaged
        let before = try file.digest()
        var options = ConversionOptions()
        options.onDamage = onDamage
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt && error.detail.contains("hot journal is damaged"), "\(error)")
        #expect(try file.digest() == before)
    }

    @Test("A database with a damaged hot journal is recovered as incomplete, and kept with its journal")
    func recovered() throws {
        let file = try Self.file().damaged
        let journal = try Self.bytes(file.path + "-journal")
        let report = try InPlaceRecovery(
            of: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions()
        ).runLocked()
        #expect(!report.complete && report.notes.contains { $0.contains("the journal is damaged") }, "\(report)")
        #expect(try Self.bytes(file.path + "-damaged-journal") == journal)
    }

    @Test("A journal that was incomplete when the power failed is rolled back, because no page had been changed")
    func incomplete() throws {
        let (file, before, journal) = try Self.file()
        let database = try Self.bytes(file.path)
        #expect(try !Self.isDamaged(journal, of: database))
        #expect(try Self.isDamaged(Self.bytes(file.path + "-journal"), of: database))
        let segments = try #require(try JournalHeader(HeldBytes(journal))).segments(in: HeldBytes(journal))
        try #require(segments.count > 1)
        // The first segment alone, with a wrong byte in its last record, before any page was written.
        var only = Array(journal[..<Int(segments[0].end)])
        only[only.count - 204] ^= 0xff
        #expect(try !Self.isDamaged(only, of: before))
        #expect(try Self.isDamaged(only, of: database))
        // The count of an unsynced segment is 0, and that of a writer that does not sync is the largest number.
        for count in [[0, 0, 0, 0], [255, 255, 255, 255]] as [[UInt8]] {
            only.replaceSubrange(8..<12, with: count)
            #expect(try !Self.isDamaged(only, of: database))
        }
        let cut = Array(journal[..<Int(segments[0].end - 300)])
        #expect(try !Self.isDamaged(cut, of: before))
        #expect(try Self.isDamaged(cut, of: database))
        try Self.write(before, file.path)
        try Self.write(cut, file.path + "-journal")
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted && report.rows == 200)
    }
}
