internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Damaged encrypted databases, logs and journals.
@Suite struct EncryptedRecoveryTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder(inMemory: true) }

    private var path: String { folder.path("app.db") }
    private var output: String { folder.path("new.db") }

    private func recover(_ key: @escaping @Sendable () throws -> CipherKey = { try TestKeys.raw() }) throws
        -> RecoveryReport
    {
        let before = try FolderDigest(folder.url)
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(key), formats: CipherSettings.everyFormat, to: output,
            targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
        let new = try Data(contentsOf: URL(filePath: output))
        try FileManager.default.removeItem(atPath: output)
        #expect(try FolderDigest(folder.url) == before)
        try new.write(to: URL(filePath: output))
        return report
    }

    private func rows(_ key: CipherKey) throws -> [RowPlaces.Key: String] {
        let connection = try Connection(path: output, mode: .readOnly, key: key, settings: CipherSettings())
        defer { connection.close() }
        return try RowPlaces.rows(connection)
    }

    private func spoil(_ page: Int, of size: Int) throws {
        var data = try Data(contentsOf: URL(filePath: path))
        data[(page - 1) * size + size / 2] ^= 1
        try data.write(to: URL(filePath: path))
    }

    @Test("A page whose HMAC fails is lost, and no other page is", arguments: 1...Engine.current.defaultCompatibility)
    func pages(compatibility: Int) throws {
        let settings = CipherSettings(compatibility: compatibility)
        try LegacyFile.write(path, key: TestKeys.raw(), settings: settings, script: RecoveryFixture.script)
        let original: [RowPlaces.Key: String]
        do {
            let connection = try Connection(path: path, mode: .readOnly, key: TestKeys.raw(), settings: settings)
            defer { connection.close() }
            original = try RowPlaces.rows(connection)
        }
        let whole = try recover()
        #expect(whole.complete, "\(whole)")
        #expect(try rows(TestKeys.raw()) == original)
        try FileManager.default.removeItem(atPath: output)
        // Format 1 has no HMAC.
        guard compatibility > 1 else { return }
        for page in [9, 30, 41] { try spoil(page, of: settings.pageSize) }
        let report = try recover()
        let found = try rows(TestKeys.raw()).filter { !$0.key.table.hasPrefix("lost_and_found") }
        #expect(found.allSatisfy { original[$0.key] == $0.value })
        #expect(found.count < original.count && found.count > original.count * 8 / 10)
        #expect(!report.complete)
        #expect(report.tables.flatMap(\.lostPages).contains(30) || report.lostPages.contains(30))
    }

    @Test(
        "A blob whose zeros begin with its last page is recovered if the page is authentic",
        arguments: [false, true])
    func zerosOfBlob(isEncrypted: Bool) throws {
        let usable = CipherSettings().pageSize - (isEncrypted ? CipherSettings().reservedBytes : 0)
        // The record begins with 4 bytes. Source: SQLite, "Database File Format", sections 1.6 and 2.1.
        let payload = 9 * usable + 4
        let (minimum, onPage) = ((usable - 12) * 32 / 255 - 23, usable - 4)
        let rest = minimum + (payload - minimum) % onPage
        let local = rest <= usable - 35 ? rest : minimum
        let start = local + (payload - local - 1) / onPage * onPage - 4
        try LegacyFile.write(
            path, key: isEncrypted ? TestKeys.raw() : nil,
            script: """
                PRAGMA page_size = \(CipherSettings().pageSize); CREATE TABLE t(a);
                INSERT INTO t VALUES (CAST(hex(zeroblob(\(start / 2))) || '\(start % 2 == 0 ? "" : "0")'
                    || CAST(zeroblob(\(payload - 4 - start)) AS TEXT) AS BLOB)), ('other');
                """)
        let report = try recover()
        #expect(report.complete == isEncrypted && report.rows == (isEncrypted ? 2 : 1), "\(report)")
        // The file itself is not replaced: SQLite may have written these zeros.
        let before = try FolderDigest(folder.url)
        var recovery = try InPlaceRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], options: ConversionOptions())
        recovery.expectsPlaintext = true
        #expect(try recovery.runLocked().wasSound)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test(
        "Whatever number of reserved bytes is written into a readable header, every row is recovered",
        .enabled(if: Engine.current.cipherMajor >= 4), arguments: [CipherSettings.Digest.sha512, .sha1])
    func forgedReservedSize(digest: CipherSettings.Digest) throws {
        let settings = CipherSettings(hmacAlgorithm: digest, plaintextHeaderSize: 32)
        try LegacyFile.write(path, key: TestKeys.rawWithSalt(), settings: settings, script: RecoveryFixture.script)
        let original: [RowPlaces.Key: String]
        do {
            let connection = try Connection(
                path: path, mode: .readOnly, key: TestKeys.rawWithSalt(), settings: settings)
            defer { connection.close() }
            original = try RowPlaces.rows(connection)
        }
        var data = try Data(contentsOf: URL(filePath: path))
        for reserved: UInt8 in [0, 16, 32, 48, 79, 80, 81, 83, 96, 255] {
            data[20] = reserved
            try data.write(to: URL(filePath: path))
            #expect(try recover { try TestKeys.rawWithSalt() }.complete, "\(reserved)")
            #expect(try rows(TestKeys.rawWithSalt()) == original, "\(reserved)")
            try FileManager.default.removeItem(atPath: output)
        }
    }

    @Test(
        "A readable header of which only the beginning is damaged is kept, and every row is recovered",
        .enabled(if: Engine.current.cipherMajor >= 4), arguments: [0..<1, 15..<16, 0..<16])
    func damagedMagic(lost: Range<Int>) throws {
        let settings = CipherSettings(plaintextHeaderSize: 32)
        try LegacyFile.write(path, key: TestKeys.rawWithSalt(), settings: settings, script: RecoveryFixture.script)
        let connection = try Connection(path: path, mode: .readOnly, key: TestKeys.rawWithSalt(), settings: settings)
        let original = try RowPlaces.rows(connection)
        connection.close()
        var data = try Data(contentsOf: URL(filePath: path))
        for offset in lost { data[offset] ^= 1 }
        try data.write(to: URL(filePath: path))
        let report = try recover { try TestKeys.rawWithSalt() }
        #expect(report.complete && report.notes.contains { $0.contains("first 16 bytes") }, "\(report)")
        #expect(try rows(TestKeys.rawWithSalt()) == original)
        var options = ConversionOptions()
        options.format = settings
        let replaced = try InPlaceRecovery(
            of: DatabasePaths(path), provider: TestKeys.provider { try TestKeys.rawWithSalt() }, formats: [],
            options: options
        ).runLocked()
        #expect(!replaced.wasSound && replaced.rows == report.rows, "\(replaced)")
    }

    @Test(
        "An encrypted file with pages of a plaintext database at its beginning is not taken for such a database",
        arguments: [false, true])
    func plantedPages(isOfOtherSize: Bool) throws {
        let planted = try TemporaryFolder()
        try LegacyFile.write(
            planted.path("app.db"),
            script: "PRAGMA page_size = 4096; CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'forged')")
        var forged = try Data(contentsOf: URL(filePath: planted.path("app.db")))
        if isOfOtherSize { forged.replaceSubrange(16..<18, with: [0, 1]) }
        let keys: [@Sendable () throws -> CipherKey] = [
            { try TestKeys.passphrase() }, { try TestKeys.raw() }, { try TestKeys.rawWithSalt() },
        ]
        for key in keys {
            let hasSalt = try key().salt != nil
            for pageCount in [1, 2] {
                let script = "PRAGMA cipher_page_size = 4096;" + RecoveryFixture.script
                try LegacyFile.write(path, key: key(), script: script)
                var data = try Data(contentsOf: URL(filePath: path))
                data.replaceSubrange(0..<pageCount * 4096, with: forged.prefix(pageCount * 4096))
                try data.write(to: URL(filePath: path))
                let before = try FolderDigest(folder.url)
                if !hasSalt {
                    let recovery = try InPlaceRecovery(
                        of: DatabasePaths(path), provider: TestKeys.provider(key), formats: [],
                        options: ConversionOptions())
                    #expect(try storeError { _ = try recovery.runLocked() }?.code == .keyDoesNotFit)
                    #expect(try FolderDigest(folder.url) == before)
                }
                let report = try recover(key)
                #expect(!report.complete, "\(report)")
                #expect(!report.notes.contains { $0.contains("was not encrypted") }, "\(report)")
                // The salt shows that the file is encrypted; without it, only the planted pages can be read.
                let isForged = try rows(key()).values.contains { $0.contains("forged") }
                #expect(isForged == (!hasSalt && pageCount > 1 && !isOfOtherSize))
                for file in [path, output] { try FileManager.default.removeItem(atPath: file) }
            }
        }
    }

    @Test("A key that decrypts no page is refused, and so is a file of random bytes")
    func wrongKey() throws {
        try LegacyFile.write(path, key: TestKeys.raw(), script: RecoveryFixture.script)
        let before = try FolderDigest(folder.url)
        #expect(try storeError { _ = try recover { try TestKeys.raw(8) } }?.code == .keyDoesNotFit)
        #expect(try FolderDigest(folder.url) == before)
        var random = SeededRandom(seed: 1)
        try Data((0..<50_000).map { _ in UInt8.random(in: 0...255, using: &random) }).write(to: URL(filePath: path))
        #expect(try storeError { _ = try recover() }?.code == .keyDoesNotFit)
        #expect(try folder.names == ["app.db"])
    }

    @Test("The log of a database is read, encrypted or not", arguments: [true, false])
    func log(isEncrypted: Bool) throws {
        try LegacyFile.write(path, key: isEncrypted ? TestKeys.raw() : nil, unclosed: true) { connection in
            try connection.executeScript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            try connection.executeScript(text: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'one'), (2, 'two')")
            try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            try connection.executeScript(text: "UPDATE t SET b = 'zwei' WHERE a = 2; INSERT INTO t VALUES (3, 'three')")
        }
        #expect(try folder.names == ["app.db", "app.db-wal"])
        let report = try recover()
        #expect(report.complete, "\(report)")
        #expect(
            try Set(rows(TestKeys.raw()).values) == [
                "integer(1)|text(\"one\")", "integer(2)|text(\"zwei\")", "integer(3)|text(\"three\")",
            ])
    }

    @Test(
        "A file with a readable header is recovered completely, with the salt from the key",
        .enabled(if: Engine.current.defaultCompatibility >= 4))
    func readableHeader() throws {
        let settings = CipherSettings(plaintextHeaderSize: 32)
        try LegacyFile.write(
            path, key: TestKeys.rawWithSalt(), settings: settings, script: RecoveryFixture.script)
        let connection = try Connection(path: path, mode: .readOnly, key: TestKeys.rawWithSalt(), settings: settings)
        let original = try RowPlaces.rows(connection)
        connection.close()
        #expect(try storeError { _ = try recover() }?.code == .saltMissing)
        let report = try recover { try TestKeys.rawWithSalt() }
        #expect(report.complete, "\(report)")
        #expect(try rows(TestKeys.rawWithSalt()) == original)
        try FileManager.default.removeItem(atPath: output)
        try spoil(30, of: settings.pageSize)
        let worse = try recover { try TestKeys.rawWithSalt() }
        #expect(!worse.complete)
        let found = try rows(TestKeys.rawWithSalt()).filter { !$0.key.table.hasPrefix("lost_and_found") }
        #expect(found.allSatisfy { original[$0.key] == $0.value } && found.count > original.count * 8 / 10)
    }

    @Test("A hot journal restores what its transaction changed", arguments: [true, false])
    func journal(isEncrypted: Bool) throws {
        try LegacyFile.write(path, key: isEncrypted ? TestKeys.raw() : nil, unclosed: true) { connection in
            try connection.executeScript(text: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'one')")
            // The transaction spills into the file before its end.
            try connection.executeScript(text: "PRAGMA cache_size = 1; BEGIN; UPDATE t SET b = 'two'")
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO t SELECT i, hex(randomblob(20)) FROM n
                """)
        }
        #expect(try folder.names == ["app.db", "app.db-journal"])
        let report = try recover()
        #expect(report.notes.contains { $0.contains("journal") }, "\(report)")
        #expect(try rows(TestKeys.raw()).map(\.value) == ["integer(1)|text(\"one\")"])
    }

    /// Puts a log with a committed transaction of another database next to the database.
    private func addForeignLog(pageSize: Int, _ key: CipherKey?) throws {
        let other = try TemporaryFolder()
        try LegacyFile.write(other.path("app.db"), key: key, unclosed: true) { connection in
            try connection.executeScript(
                text: "PRAGMA page_size = \(pageSize); PRAGMA journal_mode = WAL; CREATE TABLE t(a, b)")
        }
        try FileManager.default.copyItem(atPath: other.path("app.db-wal"), toPath: path + "-wal")
    }

    @Test("A recovery without the log beside the database is not complete", arguments: [4096, 1024])
    func foreignLog(pageSize: Int) throws {
        // An encrypted page has the size in the key's settings.
        let key = pageSize == 4096 ? try TestKeys.raw(8) : nil
        try LegacyFile.write(
            path, key: key == nil ? nil : TestKeys.raw(), script: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)")
        #expect(try recover().complete)
        try FileManager.default.removeItem(atPath: output)
        try addForeignLog(pageSize: pageSize, key)
        let report = try recover()
        #expect(!report.complete && report.tables.map(\.rows) == [1], "\(report)")
        #expect(report.notes.contains { $0.contains("was not read") }, "\(report)")
    }

    @Test("A log from which SQLite reads nothing does not make a recovery incomplete", arguments: [0, 32, Int.max])
    func logWithoutCommits(length: Int) throws {
        try LegacyFile.write(path, key: TestKeys.raw(), unclosed: true) { connection in
            try connection.executeScript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            try connection.executeScript(text: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'one'), (2, 'two')")
            // The next transaction restarts the log with another salt. It writes frames before it ends.
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(RESTART)")
            try connection.executeScript(text: "PRAGMA cache_size = 1; BEGIN")
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO t SELECT i, hex(randomblob(20)) FROM n
                """)
        }
        let log = try Data(contentsOf: URL(filePath: path + "-wal"))
        try log.prefix(length).write(to: URL(filePath: path + "-wal"))
        let report = try recover()
        #expect(report.complete && report.tables.map(\.rows) == [2], "\(report)")
    }

    @Test("A recovery without the hot journal beside the database is not complete", arguments: [true, false])
    func journalOfOtherPageSize(isEncrypted: Bool) throws {
        try LegacyFile.write(path, key: isEncrypted ? TestKeys.raw() : nil, unclosed: true) { connection in
            try connection.executeScript(text: "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                INSERT INTO t SELECT i, 'old ' || i FROM n
                """)
            try connection.executeScript(text: "PRAGMA cache_size = 5; BEGIN; UPDATE t SET b = 'new' || substr(b, 4)")
        }
        var journal = try Data(contentsOf: URL(filePath: path + "-journal"))
        // The page size in the header is changed to 2,048, which is not that of any engine's files.
        journal.replaceSubrange(24..<28, with: [0, 0, 8, 0])
        try journal.write(to: URL(filePath: path + "-journal"))
        let report = try recover()
        #expect(!report.complete && report.tables.map(\.rows) == [3000], "\(report)")
        #expect(report.notes.contains { $0.contains("was not read") }, "\(report)")
    }

    @Test("Only a recovery of an unencrypted database says that nothing shows who wrote its rows")
    func plaintext() throws {
        for key in [nil, try TestKeys.raw()] {
            try LegacyFile.write(path, key: key, script: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)")
            let report = try recover()
            #expect(report.complete && report.notes.contains { $0.contains("was not encrypted") } == (key == nil))
            for file in [path, output] { try FileManager.default.removeItem(atPath: file) }
        }
    }
}
