internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Opening a damaged file with `onDamage: recover`.
@Suite struct DamagedOpeningTests {
    private static func configuration(
        _ onDamage: OnDamage = .recover, sinceVersion: SchemaVersion? = nil, changes: DestructiveChanges = .withhold,
        scrap: String = "INTEGER"
    ) -> Configuration {
        var configuration = Configuration.declaring(
            ["chat": ["uid": "TEXT", "body": "TEXT NOT NULL DEFAULT ''"], "scrap": ["x": scrap]], version: 26,
            destructiveChanges: changes)
        configuration.encryption.onDamage = onDamage
        configuration.encryption.sinceVersion = sinceVersion
        return configuration
    }

    @Test(
        "A missing key is reported as such if there is nothing to recover", arguments: [nil, 0], [true, false])
    func nothingToRecover(size: Int?, isStore: Bool) throws {
        let folder = try TemporaryFolder()
        if let size { try Data(count: size).write(to: URL(filePath: folder.path("app.db"))) }
        let before = try FolderDigest(folder.url)
        let provider = ClosureKeyProvider { _, _ in throw CocoaError(.featureUnsupported) }
        var options = ConversionOptions()
        options.onDamage = .recover
        let error = try storeError {
            if isStore {
                var configuration = Self.configuration()
                configuration.databaseName = "app.db"
                _ = try StoreOpening(
                    configuration: configuration, directory: folder.path(""), provider: provider
                ).run()
            } else {
                options.createsMissingFile = true
                _ = try EncryptionUpgrade(path: folder.path("app.db"), provider: provider, options: options).run()
            }
        }
        #expect(error?.code == .keyUnavailable, "\(String(describing: error))")
        #expect(try FolderDigest(folder.url) == before)
    }

    /// A file of version 3 with three rows, of which the last is in its log.
    ///
    /// Free pages contain rows of a dropped table.
    private static func file(
        key: CipherKey? = nil, version: Int = 3, journal: String = "WAL", extra: String = ""
    ) throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            if let key { try connection.setKey(key, settings: CipherSettings()) }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(journal)"))
            try connection.executeScript(
                text: """
                    PRAGMA secure_delete = OFF; PRAGMA user_version = \(version);
                    CREATE TABLE chat(uid TEXT, body TEXT); CREATE INDEX chat_uid ON chat(uid); CREATE TABLE scrap(x INTEGER);
                    INSERT INTO chat VALUES ('ana', 'one'), ('bob', 'two'); INSERT INTO scrap VALUES (1);
                    CREATE TABLE gone(a, b, c);
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
                        INSERT INTO gone SELECT i, 'gone', 'row ' || i FROM n;
                    DROP TABLE gone; \(extra)
                    """)
            if journal == "WAL" { _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") }
            try connection.execute("INSERT INTO chat VALUES ('cleo', 'three')")
        }
    }

    /// Returns the root page of a table, in a file without a hot journal.
    private static func root(_ table: String, of file: LegacyFile, _ key: CipherKey?) throws -> (page: Int, size: Int) {
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: file.path, toPath: folder.path("app.db"))
        let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        return (
            try connection.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE name = \(table)") ?? 0,
            try connection.pageSize
        )
    }

    private static func overwrite(_ table: String, of file: LegacyFile, key: CipherKey? = nil) throws {
        let (page, size) = try root(table, of: file, key)
        var data = try Data(contentsOf: URL(filePath: file.path))
        data.replaceSubrange((page - 1) * size..<page * size, with: Data(repeating: 0xff, count: size))
        try data.write(to: URL(filePath: file.path))
    }

    /// Makes the schema name a nonexistent page as an index's root, so that SQLite cannot read the file.
    private static let lostIndex =
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'chat_uid';"

    private func open(
        _ file: LegacyFile, _ configuration: Configuration = configuration(),
        key: @escaping @Sendable () throws -> CipherKey = { try TestKeys.raw() }
    ) throws -> EncryptedStore {
        var options = EncryptedStore.Options()
        options.busyTimeout = .zero
        return try EncryptedStore.openBlocking(
            configuration, directory: file.folder.url, keyProvider: TestKeys.provider(key), options: options)
    }

    private func expectOpens(_ file: LegacyFile, _ configuration: Configuration = configuration()) async throws {
        let store = try await EncryptedStore.open(
            configuration, directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .opened, "\(store.report.warnings)")
        #expect(try await store.bodies() == ["one", "two", "three"])
        await store.close()
    }

    @Test(
        "A damaged legacy file is recovered, migrated and opened, whatever the policy for undeclared tables",
        arguments: [DestructiveChanges.withhold, .allow, .refuse])
    func legacy(changes: DestructiveChanges) async throws {
        let file = try Self.file()
        try Self.overwrite("scrap", of: file)
        let configuration = Self.configuration(changes: changes)
        let before = try file.digest()
        var strict = configuration
        strict.encryption.onDamage = .rebuildIndexes
        let refusal = try #require(try storeError { try open(file, strict) })
        #expect(refusal.code == .corrupt)
        // Old engines find the damage only after SQLite has copied the log into the file.
        #expect(try file.digest() == before || !Engine.current.checksTables)
        let store = try await EncryptedStore.open(
            configuration, directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .recovered)
        #expect(LaunchReport(store.report).outcome == .recovered)
        let recovery = try #require(store.report.encryption?.recovery)
        #expect(!recovery.complete)
        #expect(recovery.tables.first { $0.name == "chat" }?.rows == 3)
        #expect(recovery.tables.first { $0.name == "scrap" }?.lostPages.count == 1)
        let apart = try #require(recovery.lostAndFound)
        #expect(apart.name == "cipherstore_lost_and_found" && apart.deletedRows > 0)
        #expect(store.report.warnings.contains { $0.contains("app.db-damaged; it is in plaintext") })
        #expect(try await store.bodies() == ["one", "two", "three"])
        let found = try await store.read {
            (
                try $0.value(Int.self, "SELECT count(*) FROM cipherstore_lost_and_found"),
                try $0.values(String.self, "SELECT event FROM cipherstore_history ORDER BY id"),
                try $0.value(Int.self, "PRAGMA user_version")
            )
        }
        #expect(found.0 == apart.deletedRows + apart.orphanedRows + apart.damagedRows)
        #expect(found.1.first == "recovered" && found.1.count == 2, "\(found.1)")
        #expect(found.2 == 26)
        let detail = try await store.read {
            try $0.value(String.self, "SELECT detail FROM cipherstore_history WHERE event = 'recovered'")
        }
        #expect(detail == "kept as app.db-damaged; rows may be missing from scrap")
        await store.close()
        #expect(try file.folder.names.filter { !$0.hasSuffix("-shm") }.contains("app.db-damaged"))
        try await expectOpens(file, configuration)
    }

    @Test(
        "A legacy file of which SQLite can read nothing is recovered, together with its log",
        arguments: ["WAL", "DELETE"])
    func malformedSchema(journal: String) async throws {
        let file = try Self.file(journal: journal, extra: Self.lostIndex)
        let store = try await EncryptedStore.open(
            Self.configuration(), directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .recovered)
        #expect(try await store.bodies() == ["one", "two", "three"])
        await store.close()
        try await expectOpens(file)
    }

    @Test(
        "After too many killed recoveries of a damaged legacy file, the file is opened as it is if requested",
        arguments: ["WAL", "DELETE"])
    func repeatedFailure(journal: String) async throws {
        let file = try Self.file(journal: journal)
        try Self.overwrite("scrap", of: file)
        _ = try KilledRun(file.folder, attempts: 2)
        var configuration = Self.configuration()
        configuration.encryption.maximumAttempts = 2
        #expect(try storeError { try open(file, configuration) }?.code == .repeatedFailure)
        configuration.encryption.onRepeatedFailure = .openPlaintext
        for _ in 0..<2 {
            let store = try open(file, configuration)
            #expect(store.report.outcome == .openedPlaintext)
            #expect(store.report.warnings.contains { $0.contains("never finished") }, "\(store.report.warnings)")
            #expect(try await store.bodies() == ["one", "two", "three"])
            await store.close()
        }
    }

    @Test("A damaged file that opening would refuse is not recovered, and stays unchanged")
    func refusedDecision() throws {
        for (version, since, code) in [(25, 24, StoreError.Code.unexpectedPlaintext), (27, nil, .downgrade)] {
            let file = try Self.file(version: version, extra: Self.lostIndex)
            let before = try file.digest()
            let configuration = Self.configuration(sinceVersion: since.map { SchemaVersion($0) })
            let error = try #require(try storeError { try open(file, configuration) })
            #expect(error.code == code, "\(error)")
            #expect(try file.digest() == before)
        }
    }

    @Test(
        "An encrypted store with a damaged schema or migrated table is recovered when it is opened",
        arguments: [true, false])
    func encrypted(isSchema: Bool) async throws {
        let key = try TestKeys.raw()
        let file = try Self.file(key: key, extra: isSchema ? Self.lostIndex : "")
        if !isSchema { try Self.overwrite("scrap", of: file, key: key) }
        let before = try file.digest()
        // The table is rebuilt, so its rows are read.
        func configuration(_ onDamage: OnDamage) -> Configuration {
            Self.configuration(onDamage, scrap: "TEXT NOT NULL")
        }
        let refusal = try #require(try storeError { try open(file, configuration(.rebuildIndexes)) })
        #expect(refusal.code == .corrupt, "\(refusal)")
        // A migration that is rolled back copies the log into the file, as SQLite does at any opening.
        #expect(try !isSchema || file.digest() == before)
        let refused = try file.digest()
        let wrong = try #require(try storeError { try open(file, configuration(.recover)) { try TestKeys.raw(8) } })
        #expect(wrong.code == .keyDoesNotFit)
        #expect(try file.digest() == refused)
        let store = try await EncryptedStore.open(
            configuration(.recover), directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .recovered)
        #expect(try await store.bodies() == ["one", "two", "three"])
        await store.close()
        try await expectOpens(file, configuration(.recover))
    }

    @Test("With encryption off, a damaged file is not recovered")
    func encryptionOff() throws {
        let file = try Self.file(extra: Self.lostIndex)
        let before = try file.digest()
        var configuration = Self.configuration()
        configuration.encryption.isEnabled = false
        let error = try #require(try storeError { try open(file, configuration) })
        #expect(error.code == .corrupt)
        // Old engines can read the schema, and write what an opening without encryption writes.
        #expect(try file.digest() == before || !Engine.current.checksTables)
        let opened = try file.digest()
        let called = try #require(
            try storeError {
                try EncryptedStore.recoverBlocking(
                    configuration, directory: file.folder.url, keyProvider: TestKeys.provider())
            })
        #expect(called.code == .encryptionDisabled)
        #expect(try file.digest() == opened)
    }

    @Test(
        "Opening a file with a damaged log keeps copies of the file and its log, and warns",
        arguments: [OnDamage.rebuildIndexes, .recover])
    func damagedLog(onDamage: OnDamage) async throws {
        let file = try Self.file(key: TestKeys.raw())
        var log = try Data(contentsOf: URL(filePath: file.path + "-wal"))
        log[26] ^= 1
        try log.write(to: URL(filePath: file.path + "-wal"))
        let refused = try LegacyFile(copying: file.path)
        #expect(try storeError { try open(refused, Self.configuration(.refuse)) }?.code == .corrupt)
        let repair = try storeError {
            try EncryptedStore.baselineBlocking(
                Self.configuration(onDamage), directory: refused.folder.url, keyProvider: TestKeys.provider())
        }
        #expect(repair?.code == .corrupt)
        #expect(try Data(contentsOf: URL(filePath: refused.path + "-wal")) == log)
        let opened = try open(file, Self.configuration(onDamage))
        #expect(opened.report.outcome == .opened)
        #expect(opened.report.warnings.contains { $0.contains("app.db-damaged") }, "\(opened.report.warnings)")
        #expect(try Data(contentsOf: URL(filePath: file.path + "-damaged-wal")) == log)
        await opened.close()
    }

    @Test("A store that finds damage while in use names the call for the recovery, and that call succeeds")
    func inUse() async throws {
        let key = try TestKeys.raw()
        let file = try Self.file(key: key, journal: "DELETE")
        do {
            let store = try await EncryptedStore.open(
                Self.configuration(), directory: file.folder.url, keyProvider: TestKeys.provider())
            await store.close()
        }
        try Self.overwrite("scrap", of: file, key: key)
        let store = try await EncryptedStore.open(
            Self.configuration(), directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(store.report.outcome == .opened)
        let error = try await failure(DatabaseError.self) {
            try await store.read { try $0.value(Int.self, "SELECT count(x) FROM scrap") }
        }
        #expect(error.advice?.contains("EncryptedStore.recover") == true, "\(error)")
        let busy = try await failure(StoreError.self) {
            var options = EncryptedStore.Options()
            options.busyTimeout = .zero
            return try await EncryptedStore.recover(
                Self.configuration(), directory: file.folder.url, keyProvider: TestKeys.provider(), options: options)
        }
        #expect(busy.code == .busy)
        await store.close()
        let report = try await EncryptedStore.recover(
            Self.configuration(), directory: file.folder.url, keyProvider: TestKeys.provider())
        #expect(report.source.hasSuffix("app.db-damaged"))
        #expect(report.tables.first { $0.name == "scrap" }?.lostPages.count == 1)
        try await expectOpens(file)
    }
}
