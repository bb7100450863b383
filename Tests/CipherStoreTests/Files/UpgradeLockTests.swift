import Foundation
import TestSupport
import Testing

@testable import CipherStore

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
        try UpgradeLock.withLock(first, timeout: 0) {
            try UpgradeLock.withLock(second, timeout: 0) {
                #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
            }
            #expect(try storeError { try UpgradeLock.withLock(first, timeout: 0) {} }?.code == .busy)
        }
        #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
        #expect(try storeError { try UpgradeLock.withLock(first, timeout: 0) {} }?.code == .busy)
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
                while !cancellation.isCancelled {
                    try UpgradeLock.withLock(paths, timeout: 60, cancellation: cancellation) {
                        relay.enter()
                        repeat { usleep(1_000) } while !relay.leave() && !cancellation.isCancelled
                    }
                }
            }
        }
        while relay.entries == 0 { usleep(1_000) }
        // Without turns they would go on for ever.
        while flock(other, LOCK_EX | LOCK_NB) != 0 {
            guard relay.entries < 20_000 else {
                Issue.record("the other process never got the lock")
                break
            }
            usleep(1_000)
        }
        cancellation.cancel()
        for job in jobs {
            do { try job.wait() } catch let error as StoreError { #expect(error.code == .cancelled) }
        }
    }
}

/// Counts who is in.
private final class Relay: @unchecked Sendable {
    // Read and written only under `lock`.
    private let lock = NSLock()
    private var inside = 0
    private var total = 0
    private var entered = Date()

    var entries: Int { lock.withLock { total } }

    func enter() {
        lock.withLock {
            inside += 1
            total += 1
            entered = Date()
        }
    }

    /// Leaves where another is inside, or would have come by now if it could.
    func leave() -> Bool {
        lock.withLock {
            guard inside > 1 || Date().timeIntervalSince(entered) > 1 else { return false }
            inside -= 1
            return true
        }
    }
}
