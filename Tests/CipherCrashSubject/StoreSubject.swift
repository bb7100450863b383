import CipherPlatform
internal import CipherStore
import CipherTestSupport
import Foundation

/// A store that is written to until the process is killed.
///
/// It prints each row whose transaction was acknowledged.
enum StoreSubject {
    private static func open(_ folder: String) async throws -> EncryptedStore {
        try await EncryptedStore.open(
            Configuration(databaseName: "app.db", version: 1), directory: URL(filePath: folder),
            keyProvider: TestKeys.provider())
    }

    /// Writes one row in each transaction, with numbers that continue from the last row.
    ///
    /// - Parameters:
    ///   - folder: The folder of `app.db`, which is created if it does not exist.
    ///   - rows: The number of rows; `nil` for no end.
    static func write(_ folder: String, rows: Int?) async throws {
        let store = try await open(folder)
        try await store.write { connection in
            try connection.execute("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        }
        var number = try await store.read { connection in
            try connection.value(Int.self, "SELECT coalesce(max(id), 0) FROM t") ?? 0
        }
        var left = rows ?? .max
        while left > 0 {
            number += 1
            left -= 1
            let id = number
            try await store.write { connection in
                try connection.execute("INSERT INTO t VALUES (\(id), \(WrittenRows.body(id)))")
            }
            WrittenRows.acknowledge(id)
        }
        await store.close()
    }

    /// Prints how many rows there are, if they are intact and without gaps.
    static func count(_ folder: String) async throws {
        let store = try await open(folder)
        let (ids, areWhole, integrity) = try await store.read { connection in
            var ids: [Int] = []
            var areWhole = true
            try connection.forEachRow("SELECT id, body FROM t ORDER BY id") { row in
                let id = try row.get(Int.self, at: 0)
                ids.append(id)
                if try row.get([UInt8].self, at: 1) != WrittenRows.body(id) { areWhole = false }
            }
            return (ids, areWhole, try connection.value(String.self, "PRAGMA integrity_check"))
        }
        await store.close()
        guard areWhole, ids == Array(1..<ids.count + 1), integrity == "ok" else {
            print("rows are missing or damaged: \(ids.count) with the highest \(ids.last ?? 0)")
            exit(1)
        }
        print(ids.count)
    }
}
