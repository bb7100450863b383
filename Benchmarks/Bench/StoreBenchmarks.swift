import CipherStore
import Foundation

/// What a store costs to open, against one connection of the C interface: in both the derivation of the key from its
/// passphrase takes nearly all of the time.
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
        ]
    }

    private func open(_ configuration: Configuration, _ provider: some KeyProvider) throws {
        var options = EncryptedStore.Options()
        options.maximumReaders = 4
        let store = try EncryptedStore.openBlocking(
            configuration, directory: folder, keyProvider: provider, options: options)
        // Readers are opened when they are needed, so all four are wanted at once.
        let threads = (0..<4).map { _ in ReaderThread(store) }
        for thread in threads { try thread.wait() }
        try store.closeBlocking()
    }

    /// The key is known already, so nothing of a derivation is left.
    private func second(_ configuration: Configuration, _ provider: some KeyProvider) throws -> Measurement {
        let first = try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider)
        let second = try Measurement.alternating(
            "open a second store on the file", against: "C interface, one connection", goal: 0.15, runs: runs,
            ours: { try Measurement.seconds { try open(configuration, provider) } }, theirs: one)
        try first.closeBlocking()
        return second
    }

    private func one() throws -> Double {
        let path = folder.appending(path: "store.db").path(percentEncoded: false)
        return try Measurement.seconds { try RawBaseline.open(path: path, key: key) }
    }
}

/// One reader at work.
// Unchecked, and safe between threads: `failure` is written before `done` is signalled, read after waiting for it.
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
