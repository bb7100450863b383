internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Hot journals from which SQLite would not restore all pages.
@Suite struct DamagedJournalTests {
    /// Returns a database with an unfinished transaction, whose journal has a wrong byte in its first record.
    private static func file(
        isEncrypted: Bool = false
    ) throws -> (damaged: LegacyFile, before: [UInt8], intactJournal: [UInt8]) {
        var before: [UInt8] = []
        let file = try LegacyFile(unclosed: true) { connection in
            if isEncrypted {
                try connection.setKey(TestKeys.raw(), settings: CipherSettings())
            } else {
                try connection.execute("PRAGMA page_size = 4096")
            }
            try connection.executeScript(
                """
                PRAGMA cache_size = 10; CREATE TABLE t(a INTEGER PRIMARY KEY, b);
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO t SELECT i, 'old' || hex(zeroblob(250)) FROM n;
                """)
            try connection.forEachRow("PRAGMA database_list") { before = try bytes($0.get(String.self, at: 2)) }
            try connection.executeScript("BEGIN; UPDATE t SET b = 'new' || substr(b, 4)")
        }
        let journal = try bytes(file.path + "-journal")
        var damaged = journal
        damaged[512 + 4 + Int(journal.big32(24)) - 200] ^= 0xff
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

    @Test(
        "A damaged hot journal is refused, and nothing is changed", arguments: [OnDamage.rebuildIndexes, .refuse],
        [false, true])
    func refused(onDamage: OnDamage, isEncrypted: Bool) throws {
        let file = try Self.file(isEncrypted: isEncrypted).damaged
        let before = try file.digest()
        var options = ConversionOptions()
        options.onDamage = onDamage
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt && error.detail.contains("hot journal is damaged"), "\(error)")
        #expect(try file.digest() == before)
    }

    @Test(
        "A database with a damaged hot journal is recovered as incomplete, and kept with its journal",
        arguments: [false, true])
    func recovered(isEncrypted: Bool) throws {
        let file = try Self.file(isEncrypted: isEncrypted).damaged
        let journal = try Self.bytes(file.path + "-journal")
        try expectIncompleteRecovery(of: file, keeping: journal)
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
        // Old releases of SQLite give an unsynced segment the count 0.
        only.replaceSubrange(8..<12, with: [0, 0, 0, 0])
        #expect(try !Self.isDamaged(only, of: before))
        // The count of a writer that does not sync is the largest number.
        only.replaceSubrange(8..<12, with: [255, 255, 255, 255])
        #expect(try !Self.isDamaged(only, of: database))
        let cut = Array(journal[..<Int(segments[0].end - 300)])
        #expect(try !Self.isDamaged(cut, of: before))
        #expect(try Self.isDamaged(cut, of: database))
        try Self.write(before, file.path)
        try Self.write(cut, file.path + "-journal")
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == .encrypted && report.rows == 200)
    }

    /// Damage that makes SQLite read only the first of several segments, or not all of it: the bytes that take the
    /// place of others, in the header at the beginning of the journal or in that of the second segment.
    private static let laterDamages: [String: (inSecond: Bool, offset: Int, bytes: [UInt8])] = [
        "one byte of the magic number": (true, 3, [0xf8]),
        "the magic number": (true, 0, [UInt8](repeating: 0, count: 8)),
        "the header": (true, 0, [UInt8](repeating: 0, count: 28)),
        "the header, which has other bytes": (true, 0, Array(1...28)),
        "the sector of the header": (true, 0, [UInt8](repeating: 0, count: 512)),
        "the sector of the header, which has other bytes": (true, 0, [UInt8](repeating: 0xa5, count: 512)),
        "the header and a part of the first record": (true, 0, [UInt8](repeating: 0, count: 4096)),
        "the size of the database": (true, 19, [0xff]),
        "the number of records": (false, 8, [0, 0, 0, 1]),
        "the number of records, which is 0": (false, 8, [0, 0, 0, 0]),
        "the number of a page": (false, 512, [0x10]),
    ]

    @Test(
        "Damage that would keep SQLite from reading a later segment is refused",
        arguments: laterDamages.keys.sorted())
    func laterSegment(damage: String) throws {
        let (file, before, intact) = try Self.file()
        let database = try Self.bytes(file.path)
        let segments = try #require(try JournalHeader(HeldBytes(intact))).segments(in: HeldBytes(intact))
        try #require(segments.count > 1)
        var journal = intact
        let (inSecond, offset, bytes) = try #require(Self.laterDamages[damage])
        let start = offset + (inSecond ? Int(segments[1].first - 512) : 0)
        journal.replaceSubrange(start..<(start + bytes.count), with: bytes)
        #expect(try Self.isDamaged(journal, of: database))
        try Self.write(journal, file.path + "-journal")
        let error = try #require(
            try storeError { try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run() })
        #expect(error.code == .corrupt && error.detail.contains("hot journal is damaged"), "\(error)")
        // Before the first segment was synced, no page had been changed, and no other segment followed.
        let only = Array(journal[..<Int(segments[0].end)])
        #expect(try !Self.isDamaged(only, of: before))
    }

    @Test(
        "A journal of which SQLite would read nothing, because its first header is damaged, is refused and kept",
        arguments: [3, 22, 26], [false, true])
    func firstHeader(offset: Int, isEncrypted: Bool) throws {
        let (file, before, intact) = try Self.file(isEncrypted: isEncrypted)
        var journal = intact
        journal[offset] ^= offset == 22 ? 2 : offset == 26 ? 16 : 1
        #expect(try Self.isDamaged(journal, of: before))
        // In the sizes, no value with one wrong bit is valid.
        if offset != 3 {
            journal[offset] = intact[offset] ^ 1
            #expect(try Self.isDamaged(journal, of: before))
        }
        try Self.write(journal, file.path + "-journal")
        let digest = try file.digest()
        let error = try #require(
            try storeError { try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run() })
        #expect(error.code == .corrupt && error.detail.contains("hot journal is damaged"), "\(error)")
        #expect(try file.digest() == digest)
        try expectIncompleteRecovery(of: file, keeping: journal)
    }

    @Test(
        "A journal with only the beginning of a header or of its magic number, as after a power loss, is not damaged",
        arguments: [8, 28])
    func partOfHeader(length: Int) throws {
        let (_, before, intact) = try Self.file(isEncrypted: false)
        let journal = Array(intact[..<length]) + [UInt8](repeating: 0, count: 2048 - length)
        #expect(try !Self.isDamaged(journal, of: before))
        let unsynced = Array(intact[..<6]) + [UInt8](repeating: 0, count: 6) + intact[12...]
        #expect(try !Self.isDamaged(unsynced, of: before))
    }

    /// Recovers a file, and checks that the report names the damaged journal, which is kept.
    private func expectIncompleteRecovery(of file: LegacyFile, keeping journal: [UInt8]) throws {
        let report = try InPlaceRecovery(
            of: DatabasePaths(file.path), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions()
        ).runLocked()
        #expect(!report.complete && report.notes.contains { $0.contains("the journal is damaged") }, "\(report)")
        #expect(try Self.bytes(file.path + "-damaged-journal") == journal)
    }

    /// Returns a page of 1024 bytes.
    private static func page(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 1024) }

    /// Returns a segment of the journal of a database with 200 such pages.
    private static func segment(_ sum: UInt8, _ records: [(page: UInt8, content: [UInt8])]) -> [UInt8] {
        let header = JournalHeader.magic + [0, 0, 0, UInt8(records.count), sum, 0, 0, 0, 0, 0, 0, 200, 0, 0, 2, 0]
        let sector = header + [0, 0, 4, 0] + [UInt8](repeating: 0, count: 484)
        let bytes = records.reduce(sector) { bytes, record in
            let sampled = stride(from: 24, to: 1024, by: 200).reduce(0) { $0 + Int(record.content[$1]) }
            return bytes + [0, 0, 0, record.page] + record.content
                + [sum, 0, UInt8(sampled >> 8), UInt8(sampled & 0xff)]
        }
        return bytes + [UInt8](repeating: 0, count: (512 - bytes.count % 512) % 512)
    }

    @Test("A page of zeros that was changed counts as changed, unless its record may have been torn")
    func zeros() throws {
        func journal(_ content: [UInt8]) -> [UInt8] {
            var journal = Self.segment(5, [(2, content), (3, content)])
            // The checksum of the second record.
            journal[512 + 1032 + 1031] ^= 1
            return journal
        }
        var database = [UInt8](repeating: 0, count: 200 * 1024)
        #expect(try !Self.isDamaged(journal(Self.page(0)), of: database))
        database.replaceSubrange(1024..<2048, with: Self.page(1))
        #expect(try Self.isDamaged(journal(Self.page(0)), of: database))
        // Zeros in place of part of a record whose page has not been changed.
        var torn = Self.page(1)
        torn.replaceSubrange(30..<200, with: [UInt8](repeating: 0, count: 170))
        #expect(try !Self.isDamaged(journal(torn), of: database))
    }

    @Test("Records of an older segment are ignored, even if they begin where a segment of the transaction could follow")
    func alignedOlderSegment() throws {
        let older = Self.segment(7, (1...10).map { ($0, Self.page($0)) })
        let next = Self.segment(8, (11...110).map { ($0, Self.page($0)) })
        // A shorter transaction, which overwrites the header of the second segment and 63 of its records.
        let newer = Self.segment(9, (111...184).map { ($0, Self.page($0)) })
        let end = 512 + 74 * 1032
        let database = [UInt8](repeating: 0xff, count: 200 * 1024)
        #expect(try !Self.isDamaged(Array(newer[..<end]) + (older + next)[end...], of: database))
    }

    @Test("An intact journal of several segments is rolled back", arguments: [false, true])
    func intact(isEncrypted: Bool) throws {
        let (file, _, journal) = try Self.file(isEncrypted: isEncrypted)
        try #require(try #require(try JournalHeader(HeldBytes(journal))).segments(in: HeldBytes(journal)).count > 1)
        try Self.write(journal, file.path + "-journal")
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider()).run()
        #expect(report.outcome == (isEncrypted ? .alreadyEncrypted : .encrypted))
        let old = try file.read(key: TestKeys.raw()) {
            try $0.value(Int.self, "SELECT count(*) FROM t WHERE b LIKE 'old%'")
        }
        #expect(old == 200)
    }

    @Test("A journal whose later segments are missing is the same as after a power loss, and is rolled back")
    func missingSegments() throws {
        let (file, _, journal) = try Self.file()
        let segments = try #require(try JournalHeader(HeldBytes(journal))).segments(in: HeldBytes(journal))
        try #require(segments.count > 1)
        #expect(try !Self.isDamaged(Array(journal[..<Int(segments[0].end)]), of: Self.bytes(file.path)))
    }

    @Test("Page 1 is written after all segments have been synced, so from then on any broken record is damage")
    func afterSync() throws {
        var files: (before: [UInt8], after: [UInt8], journal: [UInt8]) = ([], [], [])
        _ = try LegacyFile { connection in
            try connection.executeScript(
                "PRAGMA page_size = 4096; CREATE TABLE t(a); INSERT INTO t VALUES (1), (zeroblob(9000))")
            _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
            var path = ""
            try connection.forEachRow("PRAGMA database_list") { path = try $0.get(String.self, at: 2) }
            files.before = try Self.bytes(path)
            try connection.executeScript("BEGIN; UPDATE t SET a = 2 WHERE a = 1")
            let header = try Self.bytes(path + "-journal")[12..<28]
            try connection.execute("COMMIT")
            files.after = try Self.bytes(path)
            // A segment with the record of page 1, and another with that of page 2, which comes first in the journal.
            let sector = JournalHeader.magic + [0, 0, 0, 1] + header + [UInt8](repeating: 0, count: 484)
            let records = try Self.bytes(path + "-journal").dropFirst(512)
            files.journal = sector + records.dropFirst(4104).prefix(4104) + [UInt8](repeating: 0, count: 504)
            files.journal += sector + records.prefix(4104)
        }
        let half = files.after.prefix(4096) + files.before.dropFirst(4096)
        #expect(try !Self.isDamaged(files.journal, of: Array(half)))
        files.journal[files.journal.count - 204] ^= 1
        #expect(try Self.isDamaged(files.journal, of: Array(half)))
        #expect(try !Self.isDamaged(files.journal, of: files.before))
    }

    @Test("An older segment that follows an incomplete one is ignored, but refused if SQLite would read it")
    func olderSegment() throws {
        let (_, before, journal) = try Self.file()
        let segments = try #require(try JournalHeader(HeldBytes(journal))).segments(in: HeldBytes(journal))
        try #require(segments.count > 1)
        var older = journal
        older[Int(segments[1].first - 512) + 19] ^= 1
        older = Array(older[..<Int(segments[1].end)])
        #expect(try Self.isDamaged(older, of: before))
        older[512 + 4 + 4096 - 200] ^= 1
        #expect(try !Self.isDamaged(older, of: before))
    }

    @Test(
        "The journals of killed writers are not refused, whatever older transactions left behind them",
        arguments: ["DELETE", "TRUNCATE", "PERSIST"], ["OFF", "NORMAL", "FULL"])
    func killed(mode: String, synchronous: String) throws {
        var states: [(database: [UInt8], journal: [UInt8])] = []
        _ = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    PRAGMA page_size = 1024; PRAGMA cache_size = 5; PRAGMA locking_mode = EXCLUSIVE;
                    PRAGMA journal_mode = \(mode); PRAGMA synchronous = \(synchronous);
                    CREATE TABLE t(a INTEGER PRIMARY KEY, b);
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                    INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n;
                    """)
            var path = ""
            try connection.forEachRow("PRAGMA database_list") { path = try $0.get(String.self, at: 2) }
            for (number, end) in ["COMMIT", "ROLLBACK", "COMMIT", "COMMIT"].enumerated() {
                try connection.execute("BEGIN")
                for part in [0..<20, 20..<120, 120..<200].prefix(4 - number) {
                    try connection.execute(
                        "UPDATE t SET b = \(number) || b WHERE a > \(part.lowerBound) AND a <= \(part.upperBound)")
                    states.append((try Self.bytes(path), try Self.bytes(path + "-journal")))
                }
                try connection.executeScript(text: end)
            }
        }
        try #require(states.contains { $0.journal.starts(with: JournalHeader.magic) })
        for (database, journal) in states { #expect(try !Self.isDamaged(journal, of: database)) }
    }
}
