import CCipherSubjectShims
internal import CipherDatabaseConversion
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation

/// Checkpoints during which another connection restarts the log, as in SQLite's WAL-reset bug.
///
/// Before the checkpointer takes its lock, the other connection commits and checkpoints the whole log. After the
/// checkpointer has read the header, the other connection commits again, and SQLite restarts the log. A checkpointer
/// that continues with the old header marks frames of the new log as checkpointed that do not exist yet. Source:
/// SQLite, "Write-Ahead Logging", "The WAL-Reset Bug".
enum CheckpointSubject {
    /// Who checkpoints: a connection with SQLite's defaults, or a store after a commit or with an explicit TRUNCATE.
    enum Way: String {
        case connection, connectionTruncating, store, storeTruncating

        var isStore: Bool { self == .store || self == .storeTruncating }
        var truncates: Bool { self == .connectionTruncating || self == .storeTruncating }
    }

    /// Prints how many checkpoints had read a header when the other connection wrote.
    ///
    /// Also prints how often the other connection was refused as busy, and how many acknowledged rows were lost.
    ///
    /// - Parameters:
    ///   - folder: The folder of `app.db`, which is created.
    ///   - isElsewhere: Whether the other connection is in another process.
    static func run(_ folder: String, _ way: Way, runs: Int, isElsewhere: Bool) throws {
        let path = folder + "/app.db"
        let store = try open(folder)
        try store.writeBlocking { db in
            try db.execute("CREATE TABLE t(name TEXT)")
            try db.execute("CREATE TABLE filler(body BLOB)")
            try db.execute("INSERT INTO filler VALUES (zeroblob(4200000)), (zeroblob(100000))")
        }
        try store.closeBlocking()
        guard ch_install({ CheckpointSubject.hooked?.act(at: Int($0)) }) == 1 else { exit(70) }
        let other = try Other(path, isElsewhere: isElsewhere)
        let rows = try way.isStore ? storeRows(folder, way, runs, other) : connectionRows(path, way, runs, other)
        try other.close()
        let lost = try lost(rows + other.acknowledged, path)
        print("interleaved \(other.interleaved) refused \(other.refused) lost \(lost)")
    }

    /// Encrypts a file with a log, and prints how many checkpoints ran while others could write.
    static func convert(_ folder: String) async throws {
        let path = folder + "/app.db"
        try LegacyFile.write(
            path, unclosed: true,
            script: "PRAGMA journal_mode = WAL; CREATE TABLE t(name TEXT); INSERT INTO t VALUES ('in the log')")
        guard ch_install({ if $0 == Int32(CH_BEGINS) { CheckpointSubject.begun += 1 } }) == 1 else { exit(70) }
        let report = try await DatabaseConverter.encrypt(URL(filePath: path), keyProvider: TestKeys.provider())
        print("rows \(report.rows) checkpoints \(begun)")
    }

    // Counted on the thread that converts, and read after the conversion has ended.
    nonisolated(unsafe) private static var begun = 0

    // Set before the first checkpoint, and used by the checkpointing thread while the main thread waits for it.
    nonisolated(unsafe) private static var hooked: Other?

    private static func open(_ folder: String) throws -> EncryptedStore {
        try EncryptedStore.openBlocking(
            Configuration(databaseName: "app.db", version: 1), directory: URL(filePath: folder),
            keyProvider: TestKeys.provider())
    }

    private static func write(_ row: String, fillsLog: Bool, _ db: Connection) throws {
        try db.execute("INSERT INTO t VALUES (\(row))")
        // SQLite checkpoints automatically at a thousand pages, and so does a store.
        if fillsLog { try db.execute("UPDATE filler SET body = randomblob(4200000) WHERE rowid = 1") }
    }

    // MARK: Who checkpoints

    /// Returns the acknowledged rows.
    private static func storeRows(_ folder: String, _ way: Way, _ runs: Int, _ other: Other) throws -> [String] {
        let store = try open(folder)
        // Opens the connection that checkpoints, so that the header that it reads here is still unchanged.
        try store.checkpointBlocking()
        hooked = other
        defer { hooked = nil }
        for run in 0..<runs {
            try store.writeBlocking { try write("store \(run)", fillsLog: !way.truncates, $0) }
            if way.truncates { try store.checkpointBlocking() }
            try other.goOn()
            try store.writeBlocking { try write("store \(run) again", fillsLog: false, $0) }
        }
        try store.closeBlocking()
        return (0..<runs).flatMap { ["store \($0)", "store \($0) again"] }
    }

    private static func connectionRows(_ path: String, _ way: Way, _ runs: Int, _ other: Other) throws -> [String] {
        let connection = try Connection(
            path: path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings(), busyTimeout: .zero)
        hooked = other
        defer { hooked = nil }
        for run in 0..<runs {
            try connection.transaction { try write("connection \(run)", fillsLog: !way.truncates, connection) }
            if way.truncates { try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
            try other.goOn()
            try connection.transaction { try write("connection \(run) again", fillsLog: false, connection) }
        }
        connection.close()
        return (0..<runs).flatMap { ["connection \($0)", "connection \($0) again"] }
    }

    /// Returns how many rows are missing from the file.
    private static func lost(_ rows: [String], _ path: String) throws -> Int {
        let connection = try Connection(
            path: path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings(), busyTimeout: .zero)
        defer { connection.close() }
        let found = Set(try connection.values(String.self, "SELECT name FROM t"))
        return rows.count { !found.contains($0) }
    }

    // MARK: Who writes meanwhile

    /// A connection of another program, which does not wait for locks.
    private final class Other {
        private let ask: (String) throws -> String
        private let end: () throws -> Void
        private(set) var acknowledged: [String] = []
        private(set) var interleaved = 0
        private(set) var refused = 0
        private var begun: String?
        private var rows = 0

        init(_ path: String, isElsewhere: Bool) throws {
            if isElsewhere {
                let running = try TestProgram.built("CipherLockHolder").start(["sql", path, "7"])
                guard try running.line() == "ready" else { throw Failure(text: "no CipherLockHolder", status: 70) }
                ask = { try running.ask($0) }
                end = { _ = try running.wait() }
            } else {
                let lines = try SQLLines(path, keyByte: 7)
                ask = { lines.answer($0) }
                end = { lines.close() }
            }
            _ = try ask("PRAGMA wal_autocheckpoint = 0")
        }

        func act(at moment: Int) {
            do {
                switch moment {
                case Int(CH_BEGINS):
                    try insert()
                    _ = try ask("UPDATE filler SET body = randomblob(100000) WHERE rowid = 2")
                    _ = try ask("PRAGMA wal_checkpoint(PASSIVE)")
                case Int(CH_LOCKS_WRITER):
                    if try isDone("BEGIN IMMEDIATE"), try isDone("INSERT INTO t VALUES ('begun \(rows)')") {
                        begun = "begun \(rows)"
                    }
                default:
                    interleaved += 1
                    if begun == nil { try insert() } else { try commit() }
                }
            } catch {
                // A C callback cannot throw.
                print(error)
                exit(70)
            }
        }

        /// Writes after the checkpoint, and must not be refused.
        func goOn() throws {
            if begun != nil { try commit() }
            let before = refused
            for _ in 0..<3 { try insert() }
            guard refused == before else { throw Failure(text: "a write after the checkpoint was refused", status: 1) }
        }

        func close() throws { try end() }

        private func insert() throws {
            rows += 1
            if try isDone("INSERT INTO t VALUES ('other \(rows)')") { acknowledged.append("other \(rows)") }
        }

        private func commit() throws {
            if let begun, try isDone("COMMIT") { acknowledged.append(begun) }
            begun = nil
        }

        private func isDone(_ line: String) throws -> Bool {
            let answer = try ask(line)
            if answer == "error 5" { refused += 1 }
            return answer == "ok"
        }
    }
}
