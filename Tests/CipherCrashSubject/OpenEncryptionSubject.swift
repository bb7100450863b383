import CipherPlatform
internal import CipherStore
import CipherTestSupport
import Foundation

/// A store that is encrypted while several tasks write to it and print which of their rows were acknowledged.
enum OpenEncryptionSubject {
    private static let writers = 3
    /// How long the encryption may wait for other connections, of which there are none.
    private static let patience = Duration.seconds(15)

    /// Writes until the encryption has ended, and a little longer.
    ///
    /// Each writer adds a row whenever the encryption reports progress, and one after its end.
    static func use(_ store: EncryptedStore) async throws {
        try await store.write { db in
            try db.execute(
                "CREATE TABLE IF NOT EXISTS \(identifier: WrittenRows.table)(id INTEGER PRIMARY KEY, body BLOB)")
        }
        let first = try await store.read { try WrittenRows.ids($0).max() ?? 0 } + 1
        let ticks = (0..<writers).map { _ in AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        }
        let acknowledged = try await withThrowingTaskGroup(of: [Int].self) { group in
            for (number, tick) in ticks.enumerated() {
                group.addTask {
                    var ids = (first + number..<Int.max).lazy.filter { ($0 - first) % writers == number }.makeIterator()
                    var acknowledged: [Int] = []
                    for await _ in tick.stream {
                        guard let id = ids.next(), await write(id, to: store) else { continue }
                        acknowledged.append(id)
                    }
                    return acknowledged
                }
            }
            let tell = { for tick in ticks { tick.continuation.yield() } }
            tell()
            if let conversion = store.conversion {
                let limit = Task {
                    try await Task.sleep(for: patience)
                    conversion.cancel()
                }
                for await _ in conversion.progress { tell() }
                limit.cancel()
            }
            tell()
            for tick in ticks { tick.continuation.finish() }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        do {
            guard let report = try await store.conversion?.value else { return try await check(acknowledged, store) }
            guard report.outcome == .encrypted else {
                throw Failure(text: "the file is not encrypted: \(report.outcome)", status: 1)
            }
        } catch let error as StoreError {
            let goesOn = await goesOn(store, first + Int(Int16.max))
            throw Failure(text: "\(Failure(error).text); the store \(goesOn ? "goes on" : "does not go on")", status: 2)
        }
        try await check(acknowledged, store)
    }

    /// Returns whether the app can continue with the store.
    ///
    /// A call that fails once fails once on each thread. If a lock could not be released, SQLite tries for ten seconds
    /// to begin a read before it fails with `SQLITE_PROTOCOL`, so there are few tries.
    private static func goesOn(_ store: EncryptedStore, _ first: Int) async -> Bool {
        for id in first..<first + 3 where await write(id, to: store) { return true }
        return false
    }

    /// Adds a row, and changes other rows and restores them in the same transaction.
    ///
    /// Returns whether the transaction was acknowledged.
    private static func write(_ id: Int, to store: EncryptedStore) async -> Bool {
        do {
            try await store.write { db in
                try db.execute("INSERT INTO \(identifier: WrittenRows.table) VALUES (\(id), \(WrittenRows.body(id)))")
                try db.execute("UPDATE chat SET body = body || 'x' WHERE id % 4 = \(id % 4)")
                try db.execute("UPDATE chat SET body = substr(body, 1, length(body) - 1) WHERE id % 4 = \(id % 4)")
            }
        } catch {
            // A failed write is the app's failure; the encryption continues.
            return false
        }
        WrittenRows.acknowledge(id)
        return true
    }

    private static func check(_ acknowledged: [Int], _ store: EncryptedStore) async throws {
        let found = Set(try await store.read { try WrittenRows.ids($0) })
        guard found.isSuperset(of: acknowledged) else {
            throw Failure(
                text: "acknowledged rows are missing: \(Set(acknowledged).subtracting(found).sorted())", status: 1)
        }
    }
}
