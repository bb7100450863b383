import CipherPlatform
internal import CipherStore
import CipherTestSupport
import Foundation

/// A backfill of forty rows in batches of ten, which kills its own process at a given place.
enum BackfillSubject {
    /// - Parameters:
    ///   - folder: The folder of `app.db`, which is created if it does not exist.
    ///   - place: `in` for inside the batch, `behind` for after it; nothing for a complete run.
    static func run(_ folder: String, place: String?, batch: Int?) async throws {
        let configuration = Configuration(databaseName: "app.db", version: 1)
        let store = try await EncryptedStore.open(
            configuration, directory: URL(filePath: folder), keyProvider: TestKeys.provider())
        try await store.write { connection in
            try connection.execute("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, visits INTEGER NOT NULL)")
            guard try connection.value(Int.self, "SELECT count(*) FROM t") == 0 else { return }
            for id in 0..<40 { try connection.execute("INSERT INTO t VALUES (\(id), 0)") }
        }
        let visited = try await store.backfill(
            "visits", of: "t", batch: 10,
            progress: { progress in
                if place == "behind", progress.done == (batch ?? 0) * 10 { kill() }
            },
            { connection, rowIDs in
                for rowID in rowIDs {
                    try connection.execute("UPDATE t SET visits = visits + 1 WHERE id = \(rowID)")
                }
                if place == "in", rowIDs.first == Int64((batch ?? 0) - 1) * 10 { kill() }
            })
        let (least, most) = try await store.read { connection in
            (
                try connection.value(Int.self, "SELECT min(visits) FROM t") ?? -1,
                try connection.value(Int.self, "SELECT max(visits) FROM t") ?? -1
            )
        }
        print("visited \(visited), each row \(least) to \(most) times")
        await store.close()
    }

    private static func kill() {
        raise(SIGKILL)
    }
}
