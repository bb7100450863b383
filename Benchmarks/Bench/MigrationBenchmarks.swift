import CipherStore
import Foundation

/// The time that migrations take in addition to their SQL, on encrypted files with a raw key.
struct MigrationBenchmarks {
    static let rows = 200_000

    let folder: URL
    let runs: Int
    private let key: CipherKey

    init(folder: URL, runs: Int) throws {
        self.folder = folder
        self.runs = runs
        key = try .random()
    }

    func measure() throws -> [Measurement] {
        try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: work) }
        try writeOriginal()
        return [
            try .alternating(
                "rebuild a table of \(Self.rows) rows", against: "plain SQL", goal: 1.3, runs: runs,
                ours: { try measure { try open(version: 2).closeBlocking() } },
                theirs: { try measure { try rebuildPlainly() } }),
            try .alternating(
                "backfill \(Self.rows) rows", against: "plain SQL", goal: 1.3, runs: runs,
                ours: { try measure { try backfill() } }, theirs: { try measure { try backfillPlainly() } }),
        ]
    }

    private var work: URL { folder.appending(path: "migration") }
    private var original: URL { work.appending(path: "original.db") }
    private var database: URL { work.appending(path: "message.db") }

    private func measure(_ body: () throws -> Void) throws -> Double {
        for ending in ["", "-wal", "-shm"] {
            let file = URL(filePath: database.path(percentEncoded: false) + ending)
            if FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) {
                try FileManager.default.removeItem(at: file)
            }
        }
        try FileManager.default.copyItem(at: original, to: database)
        sync()
        return try Measurement.seconds(body)
    }

    // MARK: Ours

    private func configuration(version: Int) -> Configuration {
        let sentAt = version == 1 ? "INTEGER" : "INTEGER NOT NULL DEFAULT 0"
        let columns = [("id", "INTEGER PRIMARY KEY"), ("uid", "TEXT"), ("body", "TEXT"), ("sentAt", sentAt)]
        let table = DeclaredTable(
            name: "message",
            columns: columns.map { DeclaredTable.Column(name: $0.0, definition: $0.1) })
        return Configuration(
            databaseName: "message.db", version: SchemaVersion(version), schema: .tables([table]))
    }

    private func open(version: Int) throws -> EncryptedStore {
        try EncryptedStore.openBlocking(
            configuration(version: version), directory: work,
            keyProvider: .closure { [key] _, _ in key })
    }

    private func writeOriginal() throws {
        let store = try open(version: 1)
        try store.writeBlocking { db in
            for id in 0..<Self.rows {
                let message = Message(number: id)
                try db.execute(
                    """
                    INSERT INTO message(id, uid, body, sentAt)
                    VALUES (\(message.id), \(message.uid), \(message.body), \(message.sentAt))
                    """)
            }
        }
        try store.closeBlocking()
        try FileManager.default.moveItem(at: database, to: original)
    }

    private func backfill() throws {
        let store = try open(version: 1)
        let ended = DispatchSemaphore(value: 0)
        let outcome = Outcome()
        Task {
            do {
                try await store.backfill("capitals", of: "message") { db, rowIDs in
                    for rowID in rowIDs { try Self.fill(rowID, db) }
                }
            } catch {
                outcome.failure = error
            }
            ended.signal()
        }
        ended.wait()
        if let failure = outcome.failure { throw failure }
        try store.closeBlocking()
    }

    private static func fill(_ rowID: Int64, _ db: Connection) throws {
        try db.execute("UPDATE message SET body = upper(body) WHERE id = \(rowID)")
    }

    /// The error of a task.
    // Unchecked, but safe: it is written before a semaphore is signalled, and read after waiting for the semaphore.
    private final class Outcome: @unchecked Sendable {
        var failure: (any Error)?
    }

    // MARK: Plain SQL

    private func connection() throws -> Connection {
        let connection = try Connection(database, key: key)
        try connection.executeScript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        return connection
    }

    private func rebuildPlainly() throws {
        let connection = try connection()
        defer { connection.close() }
        try connection.executeScript(
            """
            BEGIN IMMEDIATE;
            CREATE TABLE new_message(
                id INTEGER PRIMARY KEY, uid TEXT, body TEXT, sentAt INTEGER NOT NULL DEFAULT 0);
            INSERT INTO new_message SELECT * FROM message;
            DROP TABLE message;
            ALTER TABLE new_message RENAME TO message;
            COMMIT;
            """)
    }

    private func backfillPlainly() throws {
        let connection = try connection()
        defer { connection.close() }
        for first in stride(from: 0, to: Self.rows, by: 500) {
            try connection.transaction {
                for id in first..<(first + 500) { try Self.fill(Int64(id), connection) }
            }
        }
    }
}
