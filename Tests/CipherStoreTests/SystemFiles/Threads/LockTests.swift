internal import CipherSystemFiles
import Foundation
import Testing

/// A lock for one thread at a time, and waiting for what other threads change.
struct LockTests {
    /// A number that threads take turns to change.
    // Unchecked, but safe: `value` is read and written only under `lock`.
    private final class Counter: @unchecked Sendable {
        let lock = Lock()
        var value = 0
    }

    /// Runs `body` on several threads at once.
    ///
    /// The threads wait for each other, and a dispatch queue may have only one for all tests.
    private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) throws {
        let tasks = (0..<count).map { number in BackgroundTask("test") { _ in body(number) } }
        for task in tasks { try task.wait() }
    }

    @Test func `What several threads do under the lock is done one after the other`() throws {
        let counter = Counter()
        try onThreads(8) { _ in
            for _ in 0..<10_000 { counter.lock.withLock { counter.value += 1 } }
        }
        #expect(counter.value == 80_000)
    }

    @Test func `The lock is free again after an error`() {
        let lock = Lock()
        #expect(throws: CancellationError.self) { try lock.withLock { throw CancellationError() } }
        #expect(lock.withLock { true })
    }

    @Test("A waiting thread continues when another one has changed what it waits for", arguments: [nil, 600.0])
    func waiting(limit: Double?) throws {
        let counter = Counter()
        let deadline = limit.map { ContinuousClock.now + .seconds($0) }
        // Each thread waits for the other one, so that neither can continue alone.
        try onThreads(2) { number in
            for turn in 0..<1_000 {
                counter.lock.withLock {
                    while counter.value != 2 * turn + number {
                        if let deadline { _ = counter.lock.wait(until: deadline) } else { counter.lock.wait() }
                    }
                    counter.value += 1
                    counter.lock.wakeAll()
                }
            }
        }
        #expect(counter.value == 2_000)
    }

    @Test("If nothing changes, the wait ends at its deadline", arguments: [-1e15, -1, 0, 0.000_001])
    func deadline(seconds: Double) {
        let lock = Lock()
        let deadline = ContinuousClock.now + .seconds(seconds)
        lock.withLock {
            // A lock may wake without a reason, and the wait must continue.
            while lock.wait(until: deadline) {}
        }
        #expect(deadline <= .now)
    }

    @Test(
        "A deadline beyond the range of all clocks can be waited for",
        arguments: [Duration.seconds(1e15), .seconds(Int64.max)])
    func distantDeadline(timeout: Duration) throws {
        let deadline = ContinuousClock.now + timeout
        let counter = Counter()
        try onThreads(2) { number in
            counter.lock.withLock {
                counter.value += 1
                counter.lock.wakeAll()
                while counter.value < 2 { _ = counter.lock.wait(until: deadline) }
            }
        }
        #expect(counter.value == 2)
    }
}
