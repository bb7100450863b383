internal import CipherStore
import Foundation

/// What a store costs to open, in derivations of its passphrase.
struct StoreBenchmarks {
    let folder: URL
    let runs: Int

    func run() throws -> [Measurement] {
        let configuration = Configuration(databaseName: "store.db", version: 1)
        let provider = ClosureKeyProvider { _, _ in try .passphrase("a passphrase of some length") }
        try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider).closeBlocking()
        return [
            try .alternating(
                "open a store: a writer and 4 readers", against: "one derivation", goal: 1.15,
                peers: "GRDB's pool: 5 derivations", runs: runs,
                ours: { try Measurement.seconds { try open(configuration, provider) } }, theirs: derivation),
            try second(configuration, provider),
        ]
    }

    private func open(_ configuration: Configuration, _ provider: ClosureKeyProvider) throws {
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
    private func second(_ configuration: Configuration, _ provider: ClosureKeyProvider) throws -> Measurement {
        let first = try EncryptedStore.openBlocking(configuration, directory: folder, keyProvider: provider)
        let second = try Measurement.alternating(
            "open a second store on the file", against: "one derivation", goal: 0.15, runs: runs,
            ours: { try Measurement.seconds { try open(configuration, provider) } }, theirs: derivation)
        try first.closeBlocking()
        return second
    }

    private func derivation() throws -> Double {
        let key = try CipherKey.passphrase("a passphrase of some length")
        let salt = try SecretBytes.random(count: CipherKey.saltLength)
        return try Measurement.seconds { _ = try key.rawKey(salt: salt, settings: CipherSettings()) }
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
