/// An outcome for which a thread can wait by blocking.
package final class BlockingAnswer<Output: Sendable>: @unchecked Sendable {
    // Read and written only under `lock`.
    private var outcome: Result<Output, any Error>?
    private let lock = Lock()

    package init() {}

    package func give(_ outcome: Result<Output, any Error>) {
        lock.withLock {
            self.outcome = outcome
            lock.wakeAll()
        }
    }

    /// Waits for the outcome; returns `nil` if there is no outcome by the deadline, or if the wait is canceled.
    package func wait(
        until deadline: ContinuousClock.Instant, or cancellation: UpgradeCancellation? = nil
    ) -> Result<Output, any Error>? {
        UpgradeCancellation.waking(lock, cancellation) {
            while outcome == nil, cancellation?.isCancelled != true, lock.wait(until: deadline) {}
            return outcome
        }
    }

    package func wait() throws -> Output {
        try lock.withLock {
            while true {
                if let outcome { return try outcome.get() }
                lock.wait()
            }
        }
    }
}
