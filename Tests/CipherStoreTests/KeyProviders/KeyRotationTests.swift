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

/// A key change on opening: the file can always be opened, and no key is dropped too early.
struct KeyRotationTests {
    private typealias Fixture = OpeningFixture

    /// The events of a provider's keys.
    ///
    /// If the provider drops the old key when it is told to, the old key no longer exists.
    private final class Log: @unchecked Sendable {
        // Read and written only under `lock`.
        private var entries: [String] = []
        private let lock = NSLock()
        func note(_ entry: String) { lock.withLock { entries.append(entry) } }
        var all: [String] { lock.withLock { entries } }
        func count(_ entry: String) -> Int { all.filter { $0 == entry }.count }
    }

    private static let old: @Sendable () throws -> CipherKey = { try TestKeys.raw() }
    private static let new: @Sendable () throws -> CipherKey = { try TestKeys.passphrase() }
    private static let missing = StoreError(.keyUnavailable, "there is none")
    private static let locked = StoreError(.keyStoreLocked, "it is locked")

    /// Returns a rotation from the old key to the new one, which records each request.
    private func rotation(
        _ log: Log, old: @escaping @Sendable () throws -> CipherKey = Self.old,
        new: @escaping @Sendable (KeyPurpose) throws -> CipherKey = { _ in try Self.new() },
        whenDone: @escaping @Sendable (String) throws -> Void = { _ in }
    ) -> KeyRotation {
        KeyRotation(
            from: .closure { purpose, _ in
                log.note("old \(purpose)")
                return try old()
            },
            to: .closure { purpose, _ in
                log.note("new \(purpose)")
                return try new(purpose)
            }
        ) { database in
            log.note("done")
            try whenDone(database)
        }
    }

    private func open(
        _ file: LegacyFile, _ provider: some KeyProvider,
        _ encryption: Configuration.Encryption = .init(sinceVersion: 24)
    ) throws -> StoreOpening.Opened {
        try Fixture.open(file.folder, Fixture.configuration(encryption), provider: provider)
    }

    /// Opens the file, and expects a refusal that leaves every byte unchanged.
    private func refusal(
        _ file: LegacyFile, _ provider: some KeyProvider, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> StoreError.Code? {
        let before = try file.digest()
        let error = try storeError { try open(file, provider) }
        #expect(try file.digest() == before, sourceLocation: sourceLocation)
        return error?.code
    }

    @Test("The old key is not reported as obsolete while an encrypted damaged original is kept")
    func damagedOriginalIsKept() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old(), journal: "DELETE")
        let kept = file.folder.path("app.db-damaged")
        try FileManager.default.copyItem(atPath: file.path, toPath: kept)
        let log = Log()
        for outcome in [OpenReport.Outcome.rekeyed, .opened] {
            let report = try open(file, rotation(log)).report
            #expect(report.outcome == outcome)
            #expect(
                report.warnings.besidesLeases.count == 1 && report.warnings.besidesLeases[0].contains("app.db-damaged"),
                "\(report.warnings)")
        }
        #expect(log.count("done") == 0)
        try FileManager.default.removeItem(atPath: kept)
        try file.folder.write("SQLite format 3\0" + String(repeating: "\0", count: 496), to: "app.db-damaged")
        #expect(try open(file, rotation(log)).report.warnings.besidesLeases == [])
        #expect(log.count("done") == 1)
    }

    @Test("The file gets the new key with all its rows, and the provider is notified once the file is on the disk")
    func rotates() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let log = Log()
        let provider = rotation(
            log,
            whenDone: { (database: String) throws -> Void in
                #expect(database.hasSuffix("/app.db"))
                #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
            })
        let report = try open(file, provider).report
        #expect(report.outcome == .rekeyed)
        #expect(report.encryption?.outcome == .rekeyed)
        #expect(report.encryption?.rows == 3)
        #expect(report.warnings.besidesLeases == [])
        #expect(log.count("done") == 1)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
        #expect(throws: DatabaseError.self) { try Fixture.rows(file, key: Self.old()) }
        let events = try file.read(key: Self.new()) {
            try $0.values(String.self, "SELECT event FROM cipherstore_history")
        }
        #expect(events.contains("rekeyed"))
    }

    @Test("Until the old key is dropped each opening notifies the provider, and afterwards none does")
    func tellsAgain() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let log = Log()
        #expect(
            try open(file, rotation(log, whenDone: { _ in throw CancellationError() })).report.warnings.besidesLeases
                .count == 1)
        #expect(try open(file, rotation(log)).report.outcome == .opened)
        #expect(log.count("done") == 2)
        let dropped = rotation(log, old: { throw Self.missing })
        #expect(try open(file, dropped).report.warnings.besidesLeases == [])
        #expect(log.count("done") == 2)
    }

    @Test("A file that a crash left under the new key opens, even if the old key is unavailable")
    func afterTheSwap() throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.new())
        let log = Log()
        let report = try open(file, rotation(log, old: { throw Self.locked })).report
        #expect(report.outcome == .opened)
        #expect(log.count("done") == 0)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(try open(file, rotation(log)).report.outcome == .opened)
        #expect(log.count("done") == 1)
    }

    @Test("A new key is created only after the old one has opened the file")
    func makesTheKeyLast() throws {
        let log = Log()
        let made = Log()
        let provider = rotation(
            log,
            new: { purpose in
                guard purpose == .createOrExisting || made.count("key") > 0 else { throw Self.missing }
                if made.count("key") == 0 { made.note("key") }
                return try Self.new()
            })
        let foreign = try Fixture.file(version: 24, encryptedWith: TestKeys.raw(9))
        #expect(try refusal(foreign, provider) == .keyUnavailable)
        #expect(made.all == [])
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        #expect(try open(file, provider).report.outcome == .rekeyed)
        #expect(
            log.all.suffix(7) == [
                "old existing", "new createOrExisting", "new existing", "new existing", "old existing", "new existing",
                "done",
            ])
    }

    @Test("A new database and a legacy file get the new key at once", arguments: [true, false])
    func newFiles(isLegacy: Bool) throws {
        let folder = try isLegacy ? Fixture.file(version: 23).folder : TemporaryFolder()
        let log = Log()
        let opened = try Fixture.open(folder, Fixture.configuration(), provider: rotation(log))
        #expect(opened.report.outcome == (isLegacy ? .encrypted : .created))
        let confirmations = Array(repeating: "new existing", count: isLegacy ? 2 : 1)
        #expect(log.all == ["new createOrExisting"] + confirmations)
        let connection = try Connection(
            path: opened.path, mode: .readOnly, key: Self.new(), settings: CipherSettings())
        connection.close()
    }

    @Test("A rotation to an equal key opens the file with a warning, and does not drop the only key")
    func equalKeys() throws {
        let log = Log()
        for version in [24, 26] {
            let file = try Fixture.file(version: version, encryptedWith: Self.new())
            for _ in 0..<2 {
                let report = try open(file, rotation(log, old: Self.new)).report
                #expect(report.outcome == .opened)
                #expect(report.warnings.count { $0.contains("it equals the new key") } == 1, "\(report.warnings)")
            }
            #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
        }
        let foreign = try Fixture.file(version: 24, encryptedWith: TestKeys.raw(9))
        #expect(try refusal(foreign, rotation(log, old: Self.new)) == .keyDoesNotFit)
        #expect(log.count("done") == 0)
    }

    @Test("If the new key is created equal to the old one, the rotation is postponed and the old key is kept")
    func madeEqual() throws {
        let log = Log()
        let file = try Fixture.file(version: 26, encryptedWith: Self.old())
        let provider = rotation(log, new: { if $0 == .existing { throw Self.missing } else { try Self.old() } })
        let report = try open(file, provider).report
        #expect(report.outcome == .opened)
        #expect(report.warnings.contains { $0.contains("postponed") && $0.contains("the new key equals the old one") })
        #expect(log.count("done") == 0)
    }

    private static let failures: [StoreError.Code] = [
        .keyUnavailable, .keyStoreLocked, .keyStoreUnavailable, .keyMalformed, .keyFileInsecure,
    ]

    @Test("If the new key is unavailable, the file opens under the old one with a warning", arguments: failures)
    func newKeyUnavailable(code: StoreError.Code) throws {
        let log = Log()
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let provider = rotation(log, new: { _ in throw StoreError(code, "the store said so") })
        let report = try open(file, provider).report
        #expect(report.outcome == .opened)
        #expect(report.warnings.count { $0.contains("postponed") && $0.contains("the store said so") } == 1)
        #expect(log.count("done") == 0)
        #expect(try Fixture.rows(file, key: Self.old()) == Fixture.allRows)
        #expect(try open(file, rotation(log)).report.outcome == .rekeyed)
    }

    @Test(
        "If the new key is unavailable and the old one does not fit, the error is the new provider's",
        arguments: failures)
    func neitherKey(code: StoreError.Code) throws {
        let log = Log()
        let file = try Fixture.file(version: 24, encryptedWith: Self.new())
        #expect(try refusal(file, rotation(log, new: { _ in throw StoreError(code, "") })) == code)
    }

    @Test("Wrong and changing keys are refused, and nothing is changed or dropped")
    func refuses() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        let log = Log()
        #expect(try refusal(file, rotation(log, old: { try TestKeys.raw(9) })) == .keyDoesNotFit)
        #expect(try refusal(file, rotation(log, old: { throw Self.locked })) == .keyStoreLocked)
        let wavering = rotation(log, new: { try TestKeys.raw($0 == .existing ? 3 : 4) })
        #expect(try refusal(file, wavering) == .keyChanged)
        #expect(log.count("done") == 0)
        #expect(try open(file, rotation(log)).report.outcome == .rekeyed)
    }

    @Test("A key change that is impossible now is postponed, and the file opens under the old key")
    func putOff() throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.old())
        let log = Log()
        let other = try Connection(path: file.path, mode: .readWrite, key: Self.old(), settings: CipherSettings())
        #expect(try other.value(Int.self, "SELECT count(*) FROM t") == 3)
        let report = try open(file, rotation(log)).report
        #expect(report.outcome == .opened)
        #expect(report.warnings.besidesLeases.count == 1)
        #expect(report.warnings.besidesLeases.first?.contains("postponed") == true)
        #expect(log.count("done") == 0)
        other.close()
        #expect(try open(file, rotation(log)).report.outcome == .rekeyed)
        #expect(try Fixture.rows(file, key: Self.new()) == Fixture.allRows)
    }

    @Test("A key change that was killed too often is postponed permanently, and the file still opens")
    func repeatedFailure() throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.old())
        _ = try KilledRun(file.folder, attempts: 5, wasWriteAheadLog: true)
        for _ in 0..<2 {
            let report = try open(file, rotation(Log())).report
            #expect(report.outcome == .opened)
            #expect(report.warnings.contains { $0.contains("started 5 times") })
        }
        #expect(try Fixture.rows(file, key: Self.old()) == Fixture.allRows)
    }

    @Test("With encryption off, a file is decrypted with whichever key it has", arguments: [true, false])
    func decrypts(isOld: Bool) throws {
        let file = try Fixture.file(version: 24, encryptedWith: isOld ? Self.old() : Self.new())
        let off = Configuration.Encryption(isEnabled: false, sinceVersion: 24, whenDisabled: .decrypt)
        #expect(try open(file, rotation(Log()), off).report.outcome == .decrypted)
        #expect(try Fixture.rows(file, key: nil) == Fixture.allRows)
    }

    @Test(
        "A failed schema migration leaves the file, its key and its journal mode unchanged, and the old key is kept",
        arguments: ["DELETE", "WAL"],
        [
            Configuration.Encryption(sinceVersion: 24),
            Configuration.Encryption(isEnabled: false, sinceVersion: 24, whenDisabled: .decrypt),
        ])
    func failsToMigrate(journal: String, encryption: Configuration.Encryption) throws {
        struct Refusal: Error {}
        let file = try Fixture.file(version: 24, encryptedWith: Self.old(), journal: journal)
        let before = try file.digest()
        let log = Log()
        var configuration = Fixture.configuration(encryption)
        configuration.launch.upgrade = { db, _, _ in
            try db.execute("DELETE FROM t")
            throw Refusal()
        }
        let error = try storeError { try Fixture.open(file.folder, configuration, provider: rotation(log)) }
        #expect(error?.code == .migration)
        #expect(error?.path == file.path)
        #expect(error?.advice == "correct the step; nothing was changed")
        // The log was copied into its file, as SQLite does when the last connection closes.
        if journal == "DELETE" { #expect(try file.digest() == before) }
        #expect(try file.folder.names == ["app.db"])
        #expect(log.count("done") == 0)
        #expect(try Fixture.rows(file, key: Self.old()) == Fixture.allRows)
        let mode = try file.read(key: Self.old()) { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(mode == journal.lowercased())
    }

    @Test("A schema that cannot be reached is refused before the file is rebuilt")
    func cannotBePlanned() throws {
        let file = try Fixture.file(version: 24, encryptedWith: Self.old())
        var configuration = Fixture.configuration()
        let updates = (2...26).map { version in
            MigrationSteps.Update(.init(version), .sql(version == 26 ? ["ALTER TABLE gone ADD COLUMN b"] : []))
        }
        configuration.schema = .steps(MigrationSteps(baseline: .sql(["CREATE TABLE t(a TEXT)"]), updates: updates))
        let before = try file.digest()
        let error = try storeError { try Fixture.open(file.folder, configuration, provider: rotation(Log())) }
        #expect(error?.code == .configuration)
        #expect(try file.digest() == before)
    }

    @Test("A plan announces the key change and makes none")
    func plans() throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.old())
        let before = try file.digest()
        let opening = try StoreOpening(
            configuration: Fixture.configuration(), directory: file.folder.path(""), provider: rotation(Log()))
        #expect(try opening.plan().step == .rekey)
        #expect(try file.digest() == before)
    }

    @Test("While the opened database is lent, no other job can take the upgrade lock")
    func locksUntilOpen() throws {
        let file = try Fixture.file(version: 26, encryptedWith: Self.old())
        let opening = try StoreOpening(
            configuration: Fixture.configuration(), directory: file.folder.path(""),
            provider: TestKeys.provider(Self.old))
        let paths = opening.paths
        let error = try opening.run { _ in
            // Uses a separate thread, because a job on this thread would belong to the run.
            let answer = BlockingAnswer<StoreError?>()
            Thread.detachNewThread {
                answer.give(Result { try storeError { try UpgradeLock.withLock(paths, timeout: .zero) {} } })
            }
            return try answer.wait()
        }
        #expect(error?.code == .busy)
    }
}
