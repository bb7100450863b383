internal import CipherStore
import CipherTestSupport
import Foundation

/// A store that is working when the process exits, and continues until all later exit handlers have run.
enum ExitSubject {
    private static let (isWorking, mayGoOn, hasEnded) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )

    static func run(_ folder: String, _ work: String?) throws -> Never {
        if work == "race" { try race(folder) }
        // The handler that is registered first runs last, after any handler of libcrypto.
        atexit {
            ExitSubject.mayGoOn.signal()
            ExitSubject.hasEnded.wait()
        }
        Thread.detachNewThread {
            do {
                work == "open" ? try open(folder) : try write(folder)
                print("done")
            } catch {
                print(Failure(error).text)
            }
            hasEnded.signal()
        }
        isWorking.wait()
        exit(0)
    }

    /// Nothing waits for the store: four tasks write and read until the process ends.
    private static func race(_ folder: String) throws -> Never {
        let store = try store(folder)
        try store.writeBlocking { try $0.execute("CREATE TABLE t(body BLOB)") }
        for _ in 0..<4 {
            Task.detached {
                while true {
                    try await store.write { try $0.execute("INSERT INTO t VALUES (randomblob(3000))") }
                    _ = try await store.read { try $0.value(Int.self, "SELECT sum(length(body)) FROM t") }
                    isWorking.signal()
                }
            }
        }
        for _ in 0..<40 { isWorking.wait() }
        exit(0)
    }

    private static func store(_ folder: String, progress: @escaping @Sendable (UpgradeProgress) -> Void = { _ in })
        throws -> EncryptedStore
    {
        try EncryptedStore.openBlocking(
            Configuration(databaseName: "app.db", version: 24), directory: URL(filePath: folder),
            keyProvider: TestKeys.provider(), progress: progress)
    }

    private static func write(_ folder: String) throws {
        try store(folder).writeBlocking { db in
            try db.execute("CREATE TABLE t(body BLOB)")
            isWorking.signal()
            mayGoOn.wait()
            for _ in 0..<200 { try db.execute("INSERT INTO t VALUES (randomblob(3000))") }
        }
    }

    /// Encrypts a legacy file first.
    private static func open(_ folder: String) throws {
        let hasBegun = Once()
        let store = try store(folder) { progress in
            guard progress.stage == .proving, hasBegun.isFirst() else { return }
            isWorking.signal()
            mayGoOn.wait()
        }
        try store.closeBlocking()
    }

    private final class Once: @unchecked Sendable {
        private let lock = NSLock()
        private var isDone = false

        func isFirst() -> Bool {
            lock.withLock {
                defer { isDone = true }
                return !isDone
            }
        }
    }
}
