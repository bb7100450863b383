internal import CipherDatabaseConversion
internal import CipherErrors
import CipherKeyProviders
import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// A damaged database that the recovered one replaces.
@Suite struct InPlaceRecoveryTests {
    /// A database in WAL mode with rows in its log, and with an overwritten page in the table `scrap`.
    struct Damaged {
        let folder: TemporaryFolder
        let path: String
        let pageSize: Int
        /// The page of `scrap` and the page of `t`.
        let scrap: Int
        let key: CipherKey?

        init(
            key: CipherKey? = nil, settings: CipherSettings = CipherSettings(), journal: String = "WAL",
            losesScrap: Bool = true
        ) throws {
            folder = try TemporaryFolder()
            path = folder.path("app.db")
            self.key = key
            var pages = (size: 0, scrap: 0)
            try LegacyFile.write(path, key: key, settings: settings, unclosed: true) { connection in
                _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(journal)"))
                try connection.executeScript(
                    """
                    PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 23;
                    CREATE TABLE t(a TEXT UNIQUE, b BLOB); CREATE TABLE scrap(x);
                    INSERT INTO t(rowid, a, b) VALUES (-4, 'first', zeroblob(9000)), (9, 'second', NULL);
                    INSERT INTO scrap VALUES (1), (2);
                    """)
                if journal == "WAL" { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") }
                pages.size = try connection.pageSize
                pages.scrap =
                    try connection.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE name = 'scrap'") ?? 0
                try connection.execute("INSERT INTO t(rowid, a) VALUES (77, 'third')")
            }
            (pageSize, scrap) = pages
            if losesScrap { try overwrite(page: scrap) }
        }

        func overwrite(page: Int) throws {
            var data = try Data(contentsOf: URL(filePath: path))
            data.replaceSubrange((page - 1) * pageSize..<page * pageSize, with: Data(repeating: 0xff, count: pageSize))
            try data.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        }

        func digest() throws -> FolderDigest { try FolderDigest(folder.url, ignoring: ["-shm"]) }

        func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: folder.path(name))) }

        func upgrade(_ provider: any KeyProvider = TestKeys.provider()) throws -> EncryptionUpgrade {
            var options = ConversionOptions()
            options.onDamage = .recover
            options.busyTimeout = .zero
            return try EncryptionUpgrade(path: path, provider: provider, options: options)
        }

        func recovery(
            _ provider: any KeyProvider = TestKeys.provider(), formats: [CipherSettings] = [CipherSettings()],
            template: String? = nil
        ) throws -> InPlaceRecovery {
            var options = ConversionOptions()
            options.busyTimeout = .zero
            return InPlaceRecovery(
                of: try DatabasePaths(path), provider: provider, formats: formats, template: template, options: options)
        }

        /// Returns the rows of `t` in a database with its log.
        static func rows(_ path: String, key: CipherKey?, settings: CipherSettings = CipherSettings()) throws
            -> [String]
        {
            let connection = try Connection(path: path, mode: .readWrite)
            defer { connection.close() }
            if let key { try connection.setKey(key, settings: settings) }
            return try connection.values(
                String.self, "SELECT rowid || a || coalesce(length(b), '') FROM t ORDER BY rowid")
        }

        static let allRows = ["-4first9000", "9second", "77third"]
    }

    // MARK: Damage that a conversion finds

    @Test("A legacy file with a damaged table is encrypted with what it still contains, and kept with its log")
    func legacy() throws {
        let damaged = try Damaged()
        let (file, log) = (try damaged.bytes("app.db"), try damaged.bytes("app.db-wal"))
        #expect(!log.isEmpty)
        let report = try damaged.upgrade().run()
        #expect(report.outcome == .recovered)
        let recovery = try #require(report.recovery)
        #expect(recovery.path == damaged.path && recovery.source == damaged.path + "-damaged")
        #expect(!recovery.complete)
        // A legacy file is expected to be unencrypted.
        #expect(!recovery.notes.contains { $0.contains("was not encrypted") }, "\(recovery)")
        #expect(recovery.tables.map(\.name) == ["t", "scrap"] && recovery.tables.map(\.rows) == [3, 0])
        #expect(recovery.tables[1].lostPages == [damaged.scrap])
        #expect(report.warnings.contains { $0.contains("app.db-damaged; it is in plaintext") }, "\(report.warnings)")
        // Old engines find the damage only after SQLite has copied the log into the file.
        let isMerged = try !Engine.current.checksTables && damaged.folder.names == ["app.db", "app.db-damaged"]
        if !isMerged {
            #expect(try damaged.folder.names == ["app.db", "app.db-damaged", "app.db-damaged-wal"])
            #expect(try damaged.bytes("app.db-damaged") == file && damaged.bytes("app.db-damaged-wal") == log)
        }
        #expect(try Damaged.rows(damaged.path, key: TestKeys.raw()) == Damaged.allRows)
        // The kept file can be opened with its log.
        // Without leases, this process keeps the old file locked.
        let copies = try TemporaryFolder()
        for name in try damaged.folder.names where name.hasPrefix("app.db-damaged") {
            try FileManager.default.copyItem(atPath: damaged.folder.path(name), toPath: copies.path(name))
        }
        #expect(try Damaged.rows(copies.path("app.db-damaged"), key: nil) == Damaged.allRows)
        let attributes = try FileManager.default.attributesOfItem(atPath: damaged.path)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
        let connection = try Connection(
            path: damaged.path, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        #expect(try connection.value(String.self, "PRAGMA journal_mode") == "wal")
        #expect(try connection.value(Int.self, "PRAGMA user_version") == 23)
    }

    @Test("A legacy file with damage that no row depends on is repaired, and no damaged file is kept")
    func indexAlone() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript("CREATE TABLE t(a TEXT UNIQUE, b); INSERT INTO t VALUES ('x', 1), ('y', 2)")
        }
        let root = try file.readOriginal {
            try $0.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE type = 'index'") ?? 0
        }
        var data = try Data(contentsOf: URL(filePath: file.path))
        data.replaceSubrange((root - 1) * 4096..<root * 4096, with: Data(repeating: 0, count: 4096))
        try data.write(to: URL(filePath: file.path))
        var options = ConversionOptions()
        options.onDamage = .recover
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(report.outcome == .encrypted && report.recovery == nil)
        #expect(try file.folder.names == ["app.db"])
    }

    @Test("Rows with duplicate keys under a UNIQUE index are all recovered, and the index is named")
    func duplicates() throws {
        let file = try LegacyFile { connection in
            try connection.executeScript("CREATE TABLE t(a TEXT); CREATE INDEX i ON t(a)")
            try connection.executeScript("INSERT INTO t VALUES ('p'), ('q'), ('q')")
            try connection.editSchema("UPDATE sqlite_master SET sql = 'CREATE UNIQUE INDEX i ON t(a)' WHERE name = 'i'")
        }
        var options = ConversionOptions()
        options.onDamage = .recover
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(report.outcome == .recovered)
        let table = try #require(report.recovery?.tables.first)
        #expect(table.rows == 3 && table.notes.contains { $0.contains("index i requires unique keys") }, "\(table)")
    }

    @Test(
        "Nothing is recovered unless this is requested", arguments: [OnDamage.refuse, .rebuildIndexes])
    func unasked(onDamage: OnDamage) throws {
        let damaged = try Damaged(journal: "DELETE")
        let before = try damaged.digest()
        var options = ConversionOptions()
        options.onDamage = onDamage
        let error = try #require(
            try storeError {
                try EncryptionUpgrade(path: damaged.path, provider: TestKeys.provider(), options: options).run()
            })
        #expect(error.code == .corrupt)
        #expect(error.advice.contains("EncryptedStore.recover"), "\(error)")
        #expect(try damaged.digest() == before)
    }

    @Test("A legacy file without its first page is not replaced, because its tables cannot be determined")
    func firstPageOfLegacy() throws {
        let damaged = try Damaged(journal: "DELETE")
        try damaged.overwrite(page: 1)
        let before = try damaged.digest()
        let error = try #require(try storeError { try damaged.upgrade().run() })
        #expect(error.code == .corrupt && error.advice.contains("template"), "\(error)")
        #expect(try damaged.digest() == before)
        let direct = try #require(try storeError { try damaged.recovery().runLocked() })
        #expect(direct.code == .corrupt && direct.advice.contains("template"), "\(direct)")
        #expect(try damaged.digest() == before)
    }

    @Test("A plaintext file whose header is lost is recovered in place, because its schema is still readable")
    func headerOfPlaintext() throws {
        let damaged = try Damaged(journal: "DELETE", losesScrap: false)
        var (data, random) = (try damaged.bytes("app.db"), SeededRandom(seed: 1))
        for offset in 0..<100 { data[offset] = UInt8.random(in: 0...255, using: &random) }
        try data.write(to: URL(filePath: damaged.path))
        let report = try damaged.recovery().runLocked()
        #expect(!report.wasSound && !report.complete && report.tables.map(\.rows) == [3, 2], "\(report)")
        #expect(report.notes.contains { $0.contains("was not encrypted") }, "\(report)")
        #expect(try Damaged.rows(damaged.path, key: TestKeys.raw()) == Damaged.allRows)
    }

    /// Changes a definition as only a newer SQLite, or damage, would.
    static func spoilDefinition(_ sql: String, of name: String, key: CipherKey?) throws -> LegacyFile {
        try LegacyFile { connection in
            if let key { try connection.setKey(key, settings: CipherSettings()) }
            try connection.executeScript(
                """
                CREATE TABLE t(a, b); INSERT INTO t VALUES ('x', 1), ('y', 2); CREATE TABLE n(a, b);
                INSERT INTO n SELECT * FROM t; CREATE VIEW v AS SELECT a FROM t; CREATE INDEX i ON n(a);
                """)
            try connection.editSchema("UPDATE sqlite_master SET sql = '\(sql)' WHERE name = '\(name)'")
        }
    }

    @Test(
        "A definition that SQLite cannot read is named if every page is intact, and nothing is changed",
        arguments: [
            ("n", "CREATE TABLE n(a, b) FUTURISTIC"), ("v", "CREATE VIEW v AS SELECT FROM (FOO BAR BAZ)"),
            ("i", "CREATE INDEX i ON n(a) INCLUDE (b)"), ("n", "CREATE TAWLE n(a, b)"),
        ], [true, false])
    func newerSyntax(definition: (name: String, sql: String), isEncrypted: Bool) throws {
        let key = isEncrypted ? try TestKeys.raw() : nil
        let file = try Self.spoilDefinition(definition.sql, of: definition.name, key: key)
        let before = try file.digest()
        var options = ConversionOptions()
        options.onDamage = .recover
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        let error = try #require(try storeError { try upgrade.run() })
        #expect(error.code == .corrupt && error.detail.contains(" \(definition.name) "), "\(error)")
        #expect(try file.digest() == before)
        // If pages are damaged too, the file is recovered, and the report mentions the table's rows.
        let size = isEncrypted ? CipherSettings().pageSize : 4096
        var data = try Data(contentsOf: URL(filePath: file.path))
        // Overwrites the page of t.
        data.replaceSubrange(size..<2 * size, with: Data(repeating: 255, count: size))
        try data.write(to: URL(filePath: file.path))
        let report = try upgrade.run()
        #expect(report.outcome == .recovered)
        if definition.name == "n" { #expect(report.recovery?.lostAndFound?.orphanedRows == 2, "\(report)") }
    }

    @Test("A file in a format newer than the engine is not treated as damaged")
    func newerFormat() throws {
        let damaged = try Damaged(journal: "DELETE", losesScrap: false)
        var data = try damaged.bytes("app.db")
        data[19] = 3
        try data.write(to: URL(filePath: damaged.path))
        let before = try damaged.digest()
        for error in try [
            storeError { try damaged.upgrade().run() }, storeError { try damaged.recovery().runLocked() },
        ] {
            #expect(error?.code == .engineTooOld, "\(String(describing: error))")
        }
        #expect(try damaged.digest() == before)
    }

    // MARK: Encrypted files

    @Test("An encrypted file with a damaged page is recovered in place under its key")
    func encrypted() throws {
        let damaged = try Damaged(key: TestKeys.raw())
        let (file, log) = (try damaged.bytes("app.db"), try damaged.bytes("app.db-wal"))
        let report = try damaged.recovery().runLocked()
        #expect(!report.complete && report.tables.map(\.rows) == [3, 0])
        #expect(
            report.notes.contains { $0.contains("is kept as") } && !report.notes.contains { $0.contains("plaintext") })
        #expect(try damaged.folder.names == ["app.db", "app.db-damaged", "app.db-damaged-wal"])
        #expect(try damaged.bytes("app.db-damaged") == file && damaged.bytes("app.db-damaged-wal") == log)
        #expect(try Damaged.rows(damaged.path, key: TestKeys.raw()) == Damaged.allRows)
        let verification = try Verification.run(
            at: DatabasePaths(damaged.path), provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(verification.isSound, "\(verification.complaints)")
    }

    @Test("A damaged first page of an encrypted file is distinguished from a wrong key, and needs the schema")
    func firstPageOfEncrypted() throws {
        // If another page were lost, it could be the one that lists the free pages.
        let damaged = try Damaged(key: TestKeys.raw(), journal: "DELETE", losesScrap: false)
        var data = try damaged.bytes("app.db")
        // The offset is after the salt.
        data[200] ^= 1
        try data.write(to: URL(filePath: damaged.path))
        let before = try damaged.digest()
        let other = try #require(
            try storeError { try damaged.upgrade(TestKeys.provider { try TestKeys.raw(8) }).run() })
        #expect(other.code == .keyDoesNotFit)
        #expect(try damaged.digest() == before)
        let error = try #require(try storeError { try damaged.upgrade().run() })
        #expect(error.code == .corrupt && error.advice.contains("template"), "\(error)")
        #expect(try damaged.digest() == before)
        let template = try LegacyFile {
            try $0.executeScript("CREATE TABLE t(a TEXT UNIQUE, b BLOB); CREATE TABLE scrap(x)")
        }
        let report = try damaged.recovery(template: template.path).runLocked()
        #expect(report.tables.map(\.name) == ["t", "scrap"])
        #expect(try Damaged.rows(damaged.path, key: TestKeys.raw()) == Damaged.allRows)
    }

    @Test("A wrong key is not accepted just because it opens another database's log beside the file")
    func otherSidecar() throws {
        for journal in ["WAL", "DELETE"] {
            let healthy = try Damaged(key: TestKeys.raw(), journal: journal, losesScrap: false)
            let other = try Damaged(key: TestKeys.raw(8), losesScrap: false)
            try? FileManager.default.removeItem(atPath: healthy.path + "-wal")
            try other.bytes("app.db-wal").write(to: URL(filePath: healthy.path + "-wal"))
            let before = try healthy.digest()
            let provider = TestKeys.provider { try TestKeys.raw(8) }
            #expect(try storeError { try healthy.recovery(provider).runLocked() }?.code == .keyDoesNotFit)
            #expect(try storeError { try healthy.upgrade(provider).run() } != nil)
            #expect(try healthy.digest() == before)
        }
    }

    @Test("A healthy file with another database's log beside it is not treated as damaged", arguments: [false, true])
    func foreignLog(isDamaged: Bool) throws {
        let file = try Damaged(key: TestKeys.raw(), journal: "DELETE", losesScrap: isDamaged)
        let other = try TemporaryFolder()
        try LegacyFile.write(other.path("app.db"), key: TestKeys.raw(8), unclosed: true) { connection in
            try connection.executeScript(text: "PRAGMA journal_mode = WAL; CREATE TABLE t(a, b)")
        }
        try FileManager.default.copyItem(atPath: other.path("app.db-wal"), toPath: file.path + "-wal")
        let before = try file.digest()
        guard isDamaged else {
            #expect(try storeError { try file.recovery().runLocked() }?.code == .staleSidecar)
            #expect(try storeError { try file.upgrade().run() }?.code == .staleSidecar)
            #expect(try file.digest() == before)
            return
        }
        let report = try file.recovery().runLocked()
        #expect(report.tables.map(\.rows) == [3, 0])
        #expect(report.notes.contains { $0.contains("belongs to another copy") }, "\(report.notes)")
    }

    @Test("A wrong key is not accepted just because it opens another database's hot journal beside the file")
    func otherJournal() throws {
        let healthy = try Damaged(key: TestKeys.raw(), journal: "DELETE", losesScrap: false)
        let other = try TemporaryFolder()
        try LegacyFile.write(other.path("app.db"), key: TestKeys.raw(8), unclosed: true) { connection in
            try connection.executeScript(text: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'one')")
            // The transaction spills into the file before its end.
            try connection.executeScript(text: "PRAGMA cache_size = 1; BEGIN; UPDATE t SET b = 'two'")
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO t SELECT i, hex(randomblob(20)) FROM n
                """)
        }
        try FileManager.default.copyItem(atPath: other.path("app.db-journal"), toPath: healthy.path + "-journal")
        let before = try healthy.digest()
        let provider = TestKeys.provider { try TestKeys.raw(8) }
        #expect(try storeError { try healthy.recovery(provider).runLocked() }?.code == .keyDoesNotFit)
        #expect(try storeError { try healthy.upgrade(provider).run() } != nil)
        #expect(try healthy.digest() == before)
    }

    @Test("A wrong key is never treated as damage", arguments: 1...Engine.current.defaultCompatibility)
    func wrongKey(compatibility: Int) throws {
        let settings = CipherSettings(compatibility: compatibility)
        let damaged = try Damaged(key: TestKeys.raw(), settings: settings)
        let before = try damaged.digest()
        let wrong = TestKeys.provider { try TestKeys.raw(8) }
        let formats = CipherSettings.everyFormat
        let direct = try #require(try storeError { try damaged.recovery(wrong, formats: formats).runLocked() })
        #expect(direct.code == .keyDoesNotFit, "\(direct)")
        #expect(try damaged.digest() == before)
        let converted = try #require(try storeError { try damaged.upgrade(wrong).run() })
        #expect(converted.code == .keyDoesNotFit, "\(converted)")
        #expect(try damaged.digest() == before)
    }

    // MARK: Names

    @Test("A taken name is not used, nor is one whose log or journal would belong to another file")
    func takenNames() throws {
        let damaged = try Damaged()
        for name in ["app.db-damaged", "app.db-damaged-2-journal", "app.db-damaged-3-wal"] {
            try damaged.folder.write("another's", to: name)
        }
        let report = try damaged.recovery().runLocked()
        #expect(report.source == damaged.path + "-damaged-4")
        for name in ["app.db-damaged", "app.db-damaged-2-journal", "app.db-damaged-3-wal"] {
            #expect(try damaged.bytes(name) == Data("another's".utf8))
        }
        #expect(
            try damaged.folder.names == [
                "app.db", "app.db-damaged", "app.db-damaged-2-journal", "app.db-damaged-3-wal", "app.db-damaged-4",
                "app.db-damaged-4-wal",
            ])
    }

    @Test("A kept file is reported as one beside the database, and belongs to no other database")
    func keptFiles() throws {
        let damaged = try Damaged()
        _ = try damaged.recovery().runLocked()
        let paths = try DatabasePaths(damaged.path)
        #expect(
            try paths.damagedOriginals().sorted() == [damaged.path + "-damaged", damaged.path + "-damaged-wal"])
        let found = try Inspector(path: damaged.path).inspect(
            provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(found.sidecars.keys.contains("app.db-damaged"))
        let error = try #require(
            try storeError {
                try FileBackup(
                    of: paths, provider: TestKeys.provider(), formats: [CipherSettings()],
                    to: damaged.path + "-damaged-2", backupProvider: nil, options: ConversionOptions()
                ).run()
            })
        #expect(error.code == .nameTaken)
    }

    @Test(
        "A healthy database that computes values longer than its file is not replaced, whatever beside it is damaged",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_031_000))
    func longValues() async throws {
        for isDamaged in [false, true] {
            let file = try LegacyFile { connection in
                try connection.executeScript(
                    text: """
                        CREATE TABLE t(a, b TEXT AS (hex(hex(a)))); INSERT INTO t(a) VALUES (randomblob(100000));
                        CREATE TABLE u(a, b); INSERT INTO u VALUES (1, 4), (2, 3), (3, 2); CREATE INDEX i ON u(a);
                        CREATE VIRTUAL TABLE f USING fts4(x);
                        """)
                if isDamaged {
                    try connection.editSchema(
                        "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON u(b)' WHERE name = 'i'")
                }
            }
            let url = URL(filePath: file.path)
            let found = try await DatabaseConverter.verify(url, keyProvider: TestKeys.provider())
            #expect(found.isSound != isDamaged && !found.warnings.isEmpty, "\(found)")
            guard !isDamaged else { continue }
            let before = try file.digest()
            #expect(try await DatabaseConverter.recover(inPlace: url, keyProvider: TestKeys.provider()).wasSound)
            #expect(try file.digest() == before)
            let output = URL(filePath: file.path + "-new")
            #expect(try await DatabaseConverter.recover(url, to: output, keyProvider: TestKeys.provider()).complete)
        }
    }

    @Test(
        "A damaged index of a table whose values are too long to check is rebuilt",
        .enabled(if: Engine.current.sqliteVersionNumber >= 3_031_000), arguments: [OnDamage.rebuildIndexes, .refuse])
    func longValuesBesideIndex(onDamage: OnDamage) async throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a, b TEXT AS (hex(hex(a))), c, d); CREATE INDEX i ON t(c);
                    INSERT INTO t(a, c, d) VALUES (randomblob(100000), 1, 4), (2, 2, 3), (3, 3, 2);
                    """)
            try connection.editSchema("UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(d)' WHERE name = 'i'")
        }
        let before = try file.digest()
        var options = ConversionOptions()
        options.onDamage = onDamage
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        guard onDamage != .refuse else {
            #expect(try storeError { try upgrade.run() }?.code == .corrupt)
            return #expect(try file.digest() == before)
        }
        #expect(try upgrade.run().outcome == .encrypted)
        let rows = try file.read(key: TestKeys.raw()) {
            try $0.values(Int.self, "SELECT c FROM t INDEXED BY i WHERE d > 2 ORDER BY d")
        }
        #expect(rows == [2, 1])
    }
}
