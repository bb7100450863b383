internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
import CipherPlatform
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// The lock between processes.
///
/// The test's own second descriptor represents another process.
struct UpgradeLockTests {
    @Test("Jobs of one process use the folder together, and another process is locked out")
    func shared() throws {
        let folder = try TemporaryFolder()
        let (first, second) = (try DatabasePaths(folder.path("a.db")), try DatabasePaths(folder.path("b.db")))
        let other = open(folder.path(""), O_RDONLY | O_DIRECTORY)
        defer { close(other) }
        try UpgradeLock.withLock(first, timeout: .zero) {
            try UpgradeLock.withLock(second, timeout: .zero) {
                #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
            }
            let job = BackgroundTask("other") { _ in try UpgradeLock.withLock(first, timeout: .zero) {} }
            let busy = try storeError { try job.wait() }
            #expect(busy?.code == .busy)
            // This process has the lock.
            #expect(busy?.detail.hasPrefix("this process or another one is already upgrading") == true)
        }
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
        #expect(try storeError { try UpgradeLock.withLock(first, timeout: .zero) {} }?.code == .busy)
    }

    @Test("A cancellation ends the wait for another job on the same file")
    func cancelled() throws {
        let folder = try TemporaryFolder()
        let paths = try DatabasePaths(folder.path("a.db"))
        let cancellation = UpgradeCancellation()
        try UpgradeLock.withLock(paths, timeout: .zero) {
            let job = BackgroundTask("job") { _ in
                try UpgradeLock.withLock(paths, timeout: .seconds(600), cancellation: cancellation) {}
            }
            cancellation.cancel()
            let error = try storeError { try job.wait() }
            #expect(error?.code == .cancelled)
        }
    }

    @Test("Jobs that follow each other without a gap let another process take its turn")
    func turns() throws {
        let folder = try TemporaryFolder()
        let other = open(folder.path(""), O_RDONLY | O_DIRECTORY)
        defer { close(other) }
        let cancellation = UpgradeCancellation()
        // Each job releases its lock only when the other job has its lock too, as long as that is possible.
        let relay = Relay()
        let jobs = try ["a.db", "b.db"].map { name in
            let paths = try DatabasePaths(folder.path(name))
            return BackgroundTask("job") { _ in
                while !cancellation.isCancelled, !relay.isExhausted {
                    try UpgradeLock.withLock(paths, timeout: .seconds(60), cancellation: cancellation) { relay.pass() }
                }
            }
        }
        relay.waitForFirst()
        #expect(flock(other, LOCK_EX) == 0)
        // Without taking turns, the jobs would have continued until they gave up.
        #expect(!relay.isExhausted)
        cancellation.cancel()
        for job in jobs {
            do { try job.wait() } catch let error as StoreError { #expect(error.code == .cancelled) }
        }
    }

    /// Starts a job within another job, in every way in which a key provider or a hook can.
    enum Nesting: CaseIterable {
        case hook, provider, task

        func run(_ body: @escaping @Sendable () throws -> Void) throws {
            switch self {
            case .hook: try body()
            case .provider:
                let provider = ClosureKeyProvider { _, _ in
                    try body()
                    return try TestKeys.raw()
                }
                _ = try TimeLimitedKeyProvider(provider, timeout: .seconds(600), cancellation: nil)
                    .key(for: .existing, database: "")
            case .task:
                let answer = BlockingAnswer<Void>()
                Task {
                    do {
                        answer.give(.success(try await DetachedThread.run(body)))
                    } catch {
                        answer.give(.failure(error))
                    }
                }
                try answer.wait()
            }
        }
    }

    @Test(
        "A job that another one waits for gets another file in the folder, even if its turn is long over",
        arguments: Nesting.allCases)
    func nested(nesting: Nesting) async throws {
        let folder = try TemporaryFolder()
        let paths = try ["a.db", "b.db", "c.db"].map { try DatabasePaths(folder.path($0)) }
        let lock = UpgradeLock(turn: .zero)
        let ran = Gate()
        // Runs on a separate thread, because the test waits for the threads of the tasks.
        try await DetachedThread.run {
            try lock.withLock(paths[0], timeout: .zero) {
                try nesting.run {
                    try lock.withLock(paths[1], timeout: .zero) {
                        try nesting.run { try lock.withLock(paths[2], timeout: .zero) { ran.arrive() } }
                    }
                }
            }
        }
        #expect(ran.count == 1)
    }

    @Test(
        "A job on the file of a job that waits for it is refused at once as misuse",
        arguments: [Nesting.hook, .provider])
    func nestedInItself(nesting: Nesting) throws {
        let folder = try TemporaryFolder()
        let paths = try ["a.db", "b.db"].map { try DatabasePaths(folder.path($0)) }
        let lock = UpgradeLock()
        try lock.withLock(paths[0], timeout: .zero) {
            try nesting.run {
                try lock.withLock(paths[1], timeout: .zero) {
                    try nesting.run {
                        let error = try storeError { try lock.withLock(paths[0], timeout: .zero) {} }
                        #expect(error?.code == .misuse)
                        #expect(error?.path == paths[0].database)
                    }
                }
            }
        }
    }

    @Test("A job that a hook starts without waiting gets the file after the hook's job has ended")
    func begunByAHook() async throws {
        let folder = try TemporaryFolder()
        let paths = try DatabasePaths(folder.path("a.db"))
        let lock = UpgradeLock()
        let begun = BlockingAnswer<Void>()
        let task = try await DetachedThread.run {
            try lock.withLock(paths, timeout: .zero) {
                let task = Task {
                    try await DetachedThread.run {
                        begun.give(.success(()))
                        try lock.withLock(paths, timeout: .seconds(600)) {}
                    }
                }
                try begun.wait()
                return task
            }
        }
        try await task.value
    }
}

/// Lets each caller leave when another one has entered.
private final class Relay: @unchecked Sendable {
    // `inside` and `hasBegun` are read and written only while `condition` is locked.
    private let condition = NSCondition()
    private var inside = 0
    private var hasBegun = false
    private let end = Date(timeIntervalSinceNow: 60)

    /// Whether the test should have ended long ago.
    var isExhausted: Bool { Date() > end }

    func waitForFirst() {
        condition.withLock { while !hasBegun { condition.wait() } }
    }

    /// Enters, and leaves when another caller is inside, or would have entered by now if possible.
    func pass() {
        condition.withLock {
            inside += 1
            hasBegun = true
            condition.broadcast()
            let latest = Date(timeIntervalSinceNow: 1)
            while inside < 2, condition.wait(until: latest) {}
            inside -= 1
        }
    }
}
