internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Backups of an open store.
@Suite(.timeLimit(.minutes(20)))
struct StoreBackupTests {
    private let folder: TemporaryFolder
    private let backups: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        backups = try TemporaryFolder()
    }

    private var target: URL { backups.url.appending(path: "backup.db") }

    private func open(isEncrypted: Bool = true) async throws -> EncryptedStore {
        try await StoreFixture(folder, isEncrypted: isEncrypted).open()
    }

    /// Two tables whose sums each write keeps equal, with an index, large values, and a table without a rowid alias.
    private static let script = """
        CREATE TABLE give(id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, note TEXT);
        CREATE TABLE take(amount INTEGER, body BLOB);
        CREATE INDEX give_note ON give(note);
        CREATE TABLE pair(a TEXT, b TEXT, PRIMARY KEY(a, b)) WITHOUT ROWID;
        """

    private static func move(_ number: Int, _ db: Connection) throws {
        try db.execute("INSERT INTO give(amount, note) VALUES (\(number), \("note \(number)"))")
        try db.execute("INSERT INTO take VALUES (\(-number), zeroblob(\(number % 3_000)))")
        try db.execute("INSERT OR REPLACE INTO pair VALUES (\("\(number % 50)"), \("\(number)"))")
        if number % 7 == 0 {
            try db.execute("DELETE FROM give WHERE id = (SELECT min(id) FROM give)")
            try db.execute("DELETE FROM take WHERE rowid = (SELECT min(rowid) FROM take)")
        }
    }

    private func connection(_ key: CipherKey? = nil) throws -> Connection {
        try Connection(
            path: target.path(percentEncoded: false), mode: .readOnly, key: key ?? TestKeys.raw(),
            settings: CipherSettings())
    }

    private func isSound(_ provider: any KeyProvider = TestKeys.provider()) async throws -> Bool {
        try await DatabaseConverter.verify(target, keyProvider: provider).isSound
    }

    // MARK: Contents

    @Test("A backup made while four tasks write contains the rows of one commit")
    func whileWritten() async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(text: Self.script)
            for number in 0..<2_000 { try Self.move(number, db) }
        }
        let isDone = Gate()
        let written = Gate()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var number = task * 1_000_000
                    while isDone.count == 0 {
                        try await store.write { [number] in try Self.move(number, $0) }
                        written.arrive()
                        number += 1
                    }
                    return number - task * 1_000_000
                }
            }
            await written.wait(until: 20)
            for round in 0..<3 {
                let before = written.count
                let report = try await store.backup(to: target)
                #expect(report.outcome == .backedUp)
                #expect(report.path == target.resolvingSymlinksInPath().path(percentEncoded: false))
                #expect(report.rows > 4_000)
                // The writers continued meanwhile.
                await written.wait(until: before + 1)
                #expect(try backups.names == ["backup.db"], "round \(round)")
                let copy = try connection()
                defer { copy.close() }
                #expect(
                    try copy.value(
                        Int.self, "SELECT (SELECT sum(amount) FROM give) + (SELECT sum(amount) FROM take)") == 0)
                #expect(
                    try copy.value(Int.self, "SELECT (SELECT count(*) FROM give) - (SELECT count(*) FROM take)") == 0)
                #expect(try copy.value(String.self, "PRAGMA integrity_check") == "ok")
                #expect(try await isSound())
                try FileManager.default.removeItem(at: target)
            }
            isDone.arrive()
            for try await count in group { #expect(count > 0) }
        }
        await store.close()
        let original = try Connection(
            path: folder.path("app.db"), mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { original.close() }
        #expect(try original.value(String.self, "PRAGMA integrity_check") == "ok")
        #expect(try folder.names.filter { !$0.hasPrefix("app.db") }.isEmpty)
    }

    @Test("A backup opens as a store with the original's key, and contains all of its objects")
    func opensAsStore() async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(text: Self.script)
            try db.executeScript(
                text: """
                    CREATE VIEW notes AS SELECT note FROM give;
                    CREATE TRIGGER given AFTER INSERT ON give BEGIN INSERT INTO take VALUES (-new.amount, NULL); END;
                    CREATE INDEX give_large ON give(amount) WHERE amount > 10;
                    """)
            for number in 0..<100 { try Self.move(number, db) }
        }
        try await store.insert("before")
        let report = try await store.backup(to: target)
        try await store.insert("after")
        #expect(report.tables >= 5)
        await store.close()
        let other = try TemporaryFolder()
        try FileManager.default.moveItem(at: target, to: other.url.appending(path: "app.db"))
        let copy = try await StoreFixture(other).open()
        #expect(try await copy.bodies() == ["before"])
        #expect(copy.report.outcome == .opened)
        let names = try await copy.read { try $0.values(String.self, "SELECT name FROM sqlite_master") }
        #expect(Set(["notes", "given", "give_large", "give_note", "pair"]).isSubset(of: names))
        await copy.close()
    }

    @Test("A backup is restored for its configuration, and a backup of a newer version is refused")
    func restored() async throws {
        var fixture = StoreFixture(folder)
        let store = try await fixture.open()
        try await store.insert("kept")
        try await store.backup(to: target)
        try await store.insert("lost")
        let busy = try await failure(StoreError.self) {
            try await EncryptedStore.restore(
                fixture.configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider(),
                options: quick)
        }
        #expect(busy.code == .busy)
        await store.close()
        let report = try await EncryptedStore.restore(
            fixture.configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider())
        #expect(report.outcome == .restored)
        let again = try await fixture.open()
        #expect(try await again.bodies() == ["kept"])
        await again.close()
        fixture.configuration.version = 24
        let before = try FolderDigest(folder.url)
        let newer = try await failure(StoreError.self) {
            try await EncryptedStore.restore(
                fixture.configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider())
        }
        #expect(newer.code == .downgrade)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A backup that the configuration could not open is not restored", arguments: ["tableVersions", "updates"])
    func unreachable(source: String) async throws {
        let sql = "CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)"
        let schema: (Double) -> Configuration.SchemaSourceKind = { version in
            source == "updates"
                ? .steps(MigrationSteps(baseline: .sql([sql])))
                : .tableVersions([.init(name: "chat", version: version, definition: .sql(sql))])
        }
        var configuration = Configuration(databaseName: "app.db", version: 1, schema: schema(1.4))
        let store = try await EncryptedStore.open(
            configuration, directory: folder.url, keyProvider: TestKeys.provider())
        await store.close()
        if source == "updates" {
            // Numbered steps cannot begin at a database whose version is unknown.
            try LegacyFile.write(backups.path("backup.db"), key: TestKeys.raw(), script: "CREATE TABLE other(a)")
        } else {
            configuration.schema = schema(1.5)
            let newer = try await EncryptedStore.open(
                configuration, directory: backups.url, keyProvider: TestKeys.provider())
            try await newer.backup(to: target)
            await newer.close()
            configuration.schema = schema(1.4)
        }
        let before = try FolderDigest(folder.url)
        let error = try await failure(StoreError.self) {
            try await EncryptedStore.restore(
                configuration, directory: folder.url, from: target, keyProvider: TestKeys.provider())
        }
        #expect(error.code == (source == "updates" ? .recordedVersion : .downgrade))
        #expect(error.path == target.resolvingSymlinksInPath().path(percentEncoded: false))
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A backup of a file with another hard link warns, because the log may have the name of that link")
    func hardLinked() async throws {
        let store = try await open()
        try await store.insert("one")
        await store.close()
        let link = folder.url.appending(path: "link.db")
        try FileManager.default.linkItem(at: folder.url.appending(path: "app.db"), to: link)
        let report = try await DatabaseConverter.backup(of: link, to: target, keyProvider: TestKeys.provider())
        #expect(report.warnings.contains { $0.contains("1 other hard link") })
        try FileManager.default.removeItem(at: target)
        try FileManager.default.removeItem(at: folder.url.appending(path: "app.db"))
        #expect(
            try await DatabaseConverter.backup(of: link, to: target, keyProvider: TestKeys.provider()).warnings
                .besidesLeases.isEmpty)
    }

    private var quick: EncryptedStore.Options {
        var options = EncryptedStore.Options()
        options.busyTimeout = .milliseconds(50)
        return options
    }

    @Test("A backup under another key opens only with that key, and its provider may create the key")
    func otherKey() async throws {
        let store = try await open()
        try await store.insert("one")
        let keyFile = backups.path("key")
        try await store.backup(to: target, keyProvider: .file(keyFile, createIfMissing: true))
        #expect(FileManager.default.fileExists(atPath: keyFile))
        #expect(try await isSound(.file(keyFile)))
        let error = try await failure(StoreError.self) { try await isSound() }
        #expect(error.code == .keyDoesNotFit)
        await store.close()
    }

    @Test("A backup of a store with a passphrase opens with the same passphrase")
    func passphrase() async throws {
        let fixture = StoreFixture(folder)
        let store = try await fixture.open(TestKeys.provider { try TestKeys.passphrase() })
        try await store.insert("one")
        try await store.backup(to: target)
        await store.close()
        #expect(try await isSound(TestKeys.provider { try TestKeys.passphrase() }))
    }

    @Test("A backup of a store with a damaged index has a sound index, and the report says so")
    func damagedIndex() async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(text: Self.script)
            for number in 1..<200 where number % 7 != 0 { try Self.move(number, db) }
        }
        await store.close()
        try StoreFixture(folder).insert(
            "INSERT INTO give(amount, note) VALUES (0, 'in no index')", besides: "give_note")
        let again = try await open()
        let report = try await again.backup(to: target)
        #expect(report.warnings.contains { $0.contains("rebuilt from the rows") }, "\(report.warnings)")
        await again.close()
        let copy = try connection()
        defer { copy.close() }
        #expect(try copy.value(String.self, "PRAGMA integrity_check") == "ok")
    }

    @Test("An unencrypted store needs a key for its backup, which is then encrypted")
    func plaintextStore() async throws {
        let store = try await open(isEncrypted: false)
        try await store.insert("one")
        let error = try await failure(StoreError.self) { try await store.backup(to: target) }
        #expect(error.code == .unexpectedPlaintext)
        #expect(try backups.names.isEmpty)
        try await store.backup(to: target, keyProvider: TestKeys.provider())
        #expect(try await isSound())
        #expect(try connection().value(String.self, "SELECT body FROM chat") == "one")
        await store.close()
    }

    @Test("A store in rollback mode can be backed up too, and its writers wait for the backup")
    func rollbackMode() async throws {
        let fixture = StoreFixture(folder)
        let first = try await fixture.open()
        await first.close()
        // Another connection, which is reading, prevents the store from changing the mode.
        let other = try fixture.connection(isEncrypted: true)
        defer { other.close() }
        #expect(try other.value(String.self, "PRAGMA journal_mode = DELETE") == "delete")
        try other.execute("BEGIN")
        try other.proveReadable()
        var patient = fixture
        // The opening also waits this long for the other connection. A busy machine may be slow between two locks.
        patient.options.busyTimeout = .seconds(2)
        let store = try await patient.open()
        try other.execute("ROLLBACK")
        try #require(store.report.warnings.contains { $0.contains("WAL mode") })
        try await store.insert("one")
        async let backup = store.backup(to: target)
        for number in 0..<5 { try await store.insert("\(number)") }
        #expect(try await backup.outcome == .backedUp)
        #expect(try await store.bodies().count == 6)
        #expect(try await isSound())
        await store.close()
    }

    // MARK: Refusals

    @Test("A taken backup name is refused, even if a folder or a link has it, and nothing is changed")
    func targetTaken() async throws {
        let store = try await open()
        try backups.write("mine", to: "backup.db")
        try FileManager.default.createDirectory(
            at: backups.url.appending(path: "folder"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: backups.path("link"), withDestinationPath: backups.path("nowhere"))
        try backups.write("a log of something else", to: "other.db-wal")
        let before = try FolderDigest(backups.url)
        let cases: [(String, StoreError.Code)] = [
            ("backup.db", .nameTaken), ("folder", .nameTaken), ("link", .notAFile), ("other.db", .nameTaken),
            ("none/backup.db", .missingFile),
        ]
        for (name, code) in cases {
            let error = try await failure(StoreError.self) {
                try await store.backup(to: backups.url.appending(path: name))
            }
            #expect(error.code == code, "\(name): \(error)")
            #expect(try FolderDigest(backups.url) == before)
        }
        let beside = folder.url.appending(path: "app.db-journal")
        let error = try await failure(StoreError.self) { try await store.backup(to: beside) }
        #expect(error.code == .nameTaken)
        let itself = try await failure(StoreError.self) {
            try await store.backup(to: folder.url.appending(path: "app.db"))
        }
        #expect(itself.code == .nameTaken)
        try await store.insert("still writes")
        await store.close()
        #expect(try folder.names == ["app.db"])
    }

    @Test(
        "A canceled backup leaves nothing, and the store continues",
        arguments: [UpgradeStage.building, .proving, .swapping])
    func cancelled(stage: UpgradeStage) async throws {
        let store = try await open()
        try await store.write { db in
            try db.executeScript(text: Self.script)
            for number in 0..<3_000 { try Self.move(number, db) }
        }
        let cancellation = UpgradeCancellation()
        let error = try await failure(StoreError.self) {
            try await DetachedThread.run {
                try Self.blocking(store, target, cancellation) { if $0.stage == stage { cancellation.cancel() } }
            }
        }
        #expect(error.code == .cancelled)
        #expect(try backups.names.isEmpty)
        try await store.insert("still writes")
        await store.close()
    }

    private static func blocking(
        _ store: EncryptedStore, _ target: URL, _ cancellation: UpgradeCancellation,
        _ progress: @escaping @Sendable (UpgradeProgress) -> Void
    ) throws {
        try store.backupBlocking(to: target, progress: progress, cancellation: cancellation)
    }

    @Test("A backup whose task is canceled while the writer is busy ends at once")
    func cancelledTask() async throws {
        let store = try await open()
        let (began, goes) = (Gate(), Gate())
        let write = Task {
            try await store.write { _ in
                began.arrive()
                goes.block()
            }
        }
        await began.wait()
        let backup = Task { [target] in _ = try await store.backup(to: target) }
        backup.cancel()
        await #expect(throws: CancellationError.self) { try await backup.value }
        goes.arrive()
        try await write.value
        #expect(try backups.names.isEmpty)
        try await store.insert("still writes")
        await store.close()
    }

    @Test("A backup of a closed store, or from inside its own closure, is refused")
    func closedOrNested() async throws {
        let store = try await open()
        let nested = try await store.write { [target] _ in
            #expect(throws: StoreError.self) { try store.backupBlocking(to: target) }
        }
        #expect(nested?.code == .misuse)
        await store.close()
        let error = try await failure(StoreError.self) { try await store.backup(to: target) }
        #expect(error.code == .closed)
        #expect(try backups.names.isEmpty)
    }

    @Test("A backup whose key is unavailable or changes leaves nothing")
    func keyRefused() async throws {
        let store = try await open()
        let missing = try await failure(StoreError.self) {
            try await store.backup(to: target, keyProvider: .file(backups.path("key")))
        }
        #expect(missing.code == .keyUnavailable)
        let calls = Gate()
        let changing = try await failure(StoreError.self) {
            try await store.backup(
                to: target,
                keyProvider: TestKeys.provider {
                    calls.arrive()
                    return try TestKeys.raw(UInt8(calls.count))
                })
        }
        #expect(changing.code == .keyChanged)
        #expect(try backups.names.isEmpty)
        await store.close()
    }
}
