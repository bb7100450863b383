internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The lock among processes, of which the test's own second descriptor stands for another.
struct UpgradeLockTests {
    @Test("Jobs of one process are in the folder together, and another process is not")
    func shared() throws {
        let folder = try TemporaryFolder()
        let (first, second) = (try DatabasePaths(folder.path("a.db")), try DatabasePaths(folder.path("b.db")))
        let other = open(folder.path(""), O_RDONLY | O_DIRECTORY)
        defer { close(other) }
        try UpgradeLock.withLock(first, timeout: .zero) {
            try UpgradeLock.withLock(second, timeout: .zero) {
                #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
            }
            let busy = try storeError { try UpgradeLock.withLock(first, timeout: .zero) {} }
            #expect(busy?.code == .busy)
            // This process has it.
            #expect(busy?.detail.hasSuffix("in this process or another") == true)
        }
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
        #expect(try storeError { try UpgradeLock.withLock(first, timeout: .zero) {} }?.code == .busy)
    }

    @Test("A cancellation ends the waiting for another job on the same file")
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

    @Test("Jobs that follow each other without a gap leave a turn to another process")
    func turns() throws {
        let folder = try TemporaryFolder()
        let other = open(folder.path(""), O_RDONLY | O_DIRECTORY)
        defer { close(other) }
        let cancellation = UpgradeCancellation()
        // Each of the two lets go only while the other one has the lock too, as long as that one can get it.
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
        // Without turns they would have gone on until they gave up.
        #expect(!relay.isExhausted)
        cancellation.cancel()
        for job in jobs {
            do { try job.wait() } catch let error as StoreError { #expect(error.code == .cancelled) }
        }
    }
}

/// Lets each who is in leave once another one has come.
private final class Relay: @unchecked Sendable {
    // `inside` and `hasBegun` are read and written only while `condition` is locked.
    private let condition = NSCondition()
    private var inside = 0
    private var hasBegun = false
    private let end = Date(timeIntervalSinceNow: 60)

    /// Whether the test should have been over long ago.
    var isExhausted: Bool { Date() > end }

    func waitForFirst() {
        condition.withLock { while !hasBegun { condition.wait() } }
    }

    /// Enters, and leaves where another is inside, or would have come by now if it could.
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
