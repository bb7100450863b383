import CipherStore
import Foundation

/// Compares the opening of a store with one connection through the C interface.
///
/// In both, the derivation of the key from its passphrase takes nearly all of the time.
struct StoreBenchmarks {
    let folder: URL
    let runs: Int
    private let key: CipherKey

    init(folder: URL, runs: Int) throws {
        self.folder = folder
        self.runs = runs
        key = try .passphrase("a passphrase of some length")
    }

    func run() throws -> [Measurement] {
        let configuration = Configuration(databaseName: "store.db", version: 1)
        let provider = ClosureKeyProvider.closure { [key] _, _ in key }
        try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider).closeBlocking()
        return [
            try .alternating(
                "open a store: a writer and 4 readers", against: "C interface, one connection", goal: 1.15,
                peers: "GRDB's pool: 5 derivations", runs: runs,
                ours: { try Measurement.seconds { try open(configuration, provider) } }, theirs: one),
            try second(configuration, provider),
            try awaitedReads(configuration, provider),
            try observedCommits(configuration, provider),
        ]
    }

    private func open(_ configuration: Configuration, _ provider: some KeyProvider) throws {
        var options = EncryptedStore.Options()
        options.maximumReaders = 4
        let store = try EncryptedStore.openBlocking(
            configuration, directory: folder, keyProvider: provider, options: options)
        // Readers are opened only when they are needed, so all four are used at once.
        let threads = (0..<4).map { _ in ReaderThread(store) }
        for thread in threads { try thread.wait() }
        try store.closeBlocking()
    }

    /// The key is already known, so this includes no key derivation.
    private func second(_ configuration: Configuration, _ provider: some KeyProvider) throws -> Measurement {
        let first = try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider)
        let second = try Measurement.alternating(
            "open a second store on the file", against: "C interface, one connection", goal: 0.15, runs: runs,
            ours: { try Measurement.seconds { try open(configuration, provider) } }, theirs: one)
        try first.closeBlocking()
        return second
    }

    /// The additional time of a read that is awaited, in microseconds.
    private func awaitedReads(_ configuration: Configuration, _ provider: some KeyProvider) throws -> Measurement {
        let store = try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider)
        let count = 20_000
        var more: [Double] = []
        for _ in 0..<runs {
            let blocking = try Measurement.seconds {
                for _ in 0..<count { _ = try store.readBlocking { try $0.value(Int.self, "SELECT 1") } }
            }
            let awaited = try Measurement.seconds {
                try awaiting { for _ in 0..<count { _ = try await store.read { try $0.value(Int.self, "SELECT 1") } } }
            }
            more.append((awaited - blocking) / Double(count) * 1e6)
        }
        try store.closeBlocking()
        return Measurement(
            name: "additional time of an awaited read", baseline: "10 microseconds", unit: "us", ours: more,
            theirs: more.map { _ in 10 }, goal: 1)
    }

    /// Commits to a table while another table is observed.
    private func observedCommits(_ configuration: Configuration, _ provider: some KeyProvider) throws -> Measurement {
        let store = try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider)
        try store.writeBlocking { db in
            try db.execute("CREATE TABLE IF NOT EXISTS written(id INTEGER PRIMARY KEY, body TEXT)")
            try db.execute("CREATE TABLE IF NOT EXISTS observed(id INTEGER PRIMARY KEY, body TEXT)")
        }
        func commits() throws -> Double {
            try Measurement.seconds {
                for number in 0..<500 {
                    try store.writeBlocking { try $0.execute("INSERT INTO written(body) VALUES (\("text \(number)"))") }
                }
            }
        }
        func observed() throws -> Double {
            let begun = DispatchSemaphore(value: 0)
            let observer = Task {
                let counts = store.observe { try $0.value(Int.self, "SELECT count(*) FROM observed") }
                for try await _ in counts { begun.signal() }
            }
            begun.wait()
            defer { observer.cancel() }
            return try commits()
        }
        let measurement = try Measurement.alternating(
            "500 commits while another table is observed", against: "without observation", goal: 1.05, runs: runs,
            ours: observed, theirs: commits)
        try store.closeBlocking()
        return measurement
    }

    /// Blocks the thread until `body` has ended.
    private func awaiting(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let answer = Answer<Void>()
        Task {
            do {
                try await body()
                answer.value = .success(())
            } catch {
                answer.value = .failure(error)
            }
            done.signal()
        }
        done.wait()
        try answer.value?.get()
    }

    private func one() throws -> Double {
        let path = folder.appending(path: "store.db").path(percentEncoded: false)
        return try Measurement.seconds { try RawBaseline.open(path: path, key: key) }
    }
}

/// A thread that reads.
// Unchecked, but safe: `failure` is written before `done` is signalled, and read after waiting for it.
private final class ReaderThread: @unchecked Sendable {
    private var failure: (any Error)?
    private let done = DispatchSemaphore(value: 0)

    init(_ store: EncryptedStore) {
        Thread { [self] in
            do {
                _ = try store.readBlocking { try $0.value(Int.self, "SELECT count(*) FROM sqlite_master") }
            } catch {
                failure = error
            }
            done.signal()
        }.start()
    }

    func wait() throws {
        done.wait()
        if let failure { throw failure }
    }
}

/// The result that a task passes to the waiting thread.
// Unchecked, but safe: `value` is written before the semaphore is signalled, and read after waiting for the semaphore.
private final class Answer<Value>: @unchecked Sendable {
    var value: Result<Value, any Error>?
}
