internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// The encryption of an open database that an earlier launch began.
@Suite(.timeLimit(.minutes(20)))
struct ResumedEncryptionTests {
    /// A database in WAL mode whose log survives a launch, and a copy of it.
    private final class Subject {
        let folder: TemporaryFolder
        private(set) var app: Connection
        private var seen = SeenStages()
        var stages: [UpgradeStage] { seen.stages }
        var path: String { folder.path("app.db") }

        init(_ script: String) throws {
            folder = try TemporaryFolder()
            app = try Connection(path: folder.path("app.db"), mode: .create, busyTimeout: .milliseconds(20))
            try app.executeScript(text: script)
            _ = try app.value(String.self, "PRAGMA journal_mode = WAL")
            // Until a connection has used the log, the close of another connection removes the log.
            try app.proveReadable()
        }

        /// Runs the first step.
        ///
        /// When the result is released, the files are as they are after a kill.
        func prepare(
            _ key: @escaping @Sendable () throws -> CipherKey = { try TestKeys.raw() },
            watching watch: @escaping @Sendable (UpgradeProgress) -> Void = { _ in }
        ) throws -> OpenEncryption {
            let seen = SeenStages()
            self.seen = seen
            var options = ConversionOptions()
            options.progress = {
                seen.add($0.stage)
                watch($0)
            }
            let encryption = try OpenEncryption(
                DatabasePaths(path), provider: TestKeys.provider(key), options: options)
            try encryption.prepare(UpgradeCancellation(), resting: {}) { [path] in
                try LockedWriter(path, nil, extensions: SQLExtensions(), busyTimeout: .seconds(5))
            }
            return encryption
        }

        /// Closes and reopens the app's connection.
        func reopen() throws {
            // A connection that has not used the log does not remove it.
            try app.proveReadable()
            app.close()
            app = try Connection(path: path, mode: .readWrite, busyTimeout: .milliseconds(20))
            try app.proveReadable()
        }

        /// Expects that the copy replaces the database and is equal to it.
        func finish(_ encryption: OpenEncryption, sourceLocation: SourceLocation = #_sourceLocation) throws {
            let before = try DatabaseDump(app)
            let version = try app.value(Int.self, "PRAGMA schema_version") ?? 0
            app.close()
            var key: FileKey?
            _ = try encryption.finish(&key, UpgradeCancellation())
            let fileKey = try #require(key)
            let connection = try Connection(
                path: path, mode: .readWrite, key: fileKey.key, settings: fileKey.settings, busyTimeout: .seconds(5))
            #expect(
                try connection.values(String.self, "PRAGMA integrity_check") == ["ok"], sourceLocation: sourceLocation)
            try connection.executeScript(text: "DROP TABLE cipherstore_history; PRAGMA schema_version = \(version)")
            let after = try DatabaseDump(connection)
            connection.close()
            #expect(after == before, "\(after.differences(from: before))", sourceLocation: sourceLocation)
            #expect(try folder.names == ["app.db"], sourceLocation: sourceLocation)
        }
    }

    @Test(
        "A resumed copy gets all later writes, and is rebuilt only if the schema differs", .enabled(if: hasBoot),
        arguments: OpenEncryptionTests.cases.map(\.name))
    func written(name: String) throws {
        let (_, script, changes) = try #require(OpenEncryptionTests.cases.first { $0.name == name })
        let subject = try Subject(script)
        _ = try subject.prepare()
        #expect(subject.stages.contains(.building))
        for (number, change) in changes.enumerated() {
            try subject.app.executeScript(text: change)
            guard number % 2 == 1 else { continue }
            _ = try subject.prepare()
            #expect(subject.stages == [.proving])
        }
        let encryption = try subject.prepare()
        let hasOtherSchema = changes.contains { $0.hasPrefix("DROP TABLE") }
        #expect(subject.stages == (hasOtherSchema ? [.building, .proving] : [.proving]))
        try subject.finish(encryption)
    }

    @Test(
        "If the log is gone the whole copy is compared, and is rebuilt only if rows differ", .enabled(if: hasBoot),
        arguments: [false, true])
    func withoutLog(isWritten: Bool) throws {
        let subject = try Subject("CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        _ = try subject.prepare()
        if isWritten { try subject.app.execute("UPDATE t SET a = 'z' WHERE id = 2") }
        try subject.reopen()
        let encryption = try subject.prepare()
        #expect(subject.stages.contains(.proving))
        #expect(subject.stages.contains(.building) == isWritten)
        try subject.finish(encryption)
    }

    @Test("A copy with another schema or under another key is rebuilt", arguments: [false, true])
    func unusable(hasOtherKey: Bool) throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        _ = try subject.prepare()
        if !hasOtherKey { try subject.app.execute("ALTER TABLE t ADD COLUMN b DEFAULT 7") }
        let encryption = try subject.prepare { try TestKeys.raw(hasOtherKey ? 12 : 7) }
        #expect(subject.stages.contains(.building))
        try subject.finish(encryption)
    }

    /// Whether the start of the system can be told from others.
    private static var hasBoot: Bool { LinuxCalls.areUsed || FileSystem.bootIdentity() != nil }

    @Test("A copy written before the system was restarted is rebuilt", .enabled(if: hasBoot))
    func otherStart() throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        _ = try subject.prepare()
        let record = subject.folder.url.appending(path: "app.db-attempt")
        let text = try String(contentsOf: record, encoding: .utf8)
        let boot = try #require(FileSystem.bootIdentity())
        #expect(text.contains(boot))
        let other = String(boot.reversed())
        try Data(text.replacing(boot, with: other).utf8).write(to: record)
        let encryption = try subject.prepare()
        #expect(subject.stages.contains(.building))
        try subject.finish(encryption)
    }

    @Test(
        "A launch that is killed during the long comparison leaves a copy with which the next one continues",
        .enabled(if: hasBoot))
    func killedWhileComparing() throws {
        // The comparison reports its progress for each megabyte.
        let subject = try Subject(
            """
            CREATE TABLE t(id INTEGER PRIMARY KEY, a);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO t SELECT i, randomblob(10000) FROM n;
            """)
        let boot = try #require(FileSystem.bootIdentity())
        let record = subject.folder.url.appending(path: "app.db-attempt")
        let path = subject.path
        let marks = Marks()
        let encryption = try subject.prepare(watching: { progress in
            guard progress.stage == .proving else { return }
            if progress.bytes == 0 {
                // The round before the comparison then has something to copy.
                let app = try? Connection(path: path, mode: .readWrite, busyTimeout: .seconds(5))
                marks.add((try? app?.execute("UPDATE t SET a = 'x' WHERE id = 7")) != nil)
                app?.close()
            } else {
                marks.add((try? String(contentsOf: record, encoding: .utf8))?.contains(boot) == true)
            }
        })
        #expect(marks.all.count > 1)
        #expect(!marks.all.contains(false))
        try subject.finish(encryption)
    }

    @Test("A copy that another run is making is left alone, and the error reports it")
    func beingMade() throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let encryption = try subject.prepare()
        let names = try subject.folder.names
        for attempt in 0..<2 {
            let error = try #require(throws: StoreError.self) {
                if attempt == 0 {
                    _ = try subject.prepare()
                } else {
                    try Leftovers.sweep(DatabasePaths(subject.path))
                }
            }
            #expect(error.code == .busy)
            #expect(error.detail.contains("has the database open and is encrypting it"))
        }
        #expect(try Attempts(paths: DatabasePaths(subject.path), options: ConversionOptions()).settle(nil) == [])
        #expect(try subject.folder.names == names)
        try subject.finish(encryption)
    }

    @Test("A conversion that was ended early leaves nothing behind")
    func ended() throws {
        let subject = try Subject("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let encryption = try subject.prepare()
        #expect(try subject.folder.names.contains { $0.hasPrefix("app.db-upgrade-") })
        encryption.end()
        subject.app.close()
        #expect(try subject.folder.names == ["app.db"])
    }
}

/// What a run found at each progress report.
private final class Marks: @unchecked Sendable {
    // Read and written only under `lock`.
    private var found: [Bool] = []
    private let lock = Lock()

    var all: [Bool] { lock.withLock { found } }

    func add(_ isAsExpected: Bool) { lock.withLock { found.append(isAsExpected) } }
}

/// The stages that a run has reported.
private final class SeenStages: @unchecked Sendable {
    // Read and written only under `lock`.
    private var seen: [UpgradeStage] = []
    private let lock = Lock()

    var stages: [UpgradeStage] { lock.withLock { seen } }

    func add(_ stage: UpgradeStage) {
        lock.withLock { if seen.last != stage { seen.append(stage) } }
    }
}
