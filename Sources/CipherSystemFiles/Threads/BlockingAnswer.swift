internal import Dispatch

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// An outcome that a thread blocks for.
package final class BlockingAnswer<Output: Sendable>: @unchecked Sendable {

    package init() {}

    // Written before the semaphore is signalled, and read after waiting for it.
    private var outcome: Result<Output, any Error>?
    private let semaphore = DispatchSemaphore(value: 0)

    package func give(_ outcome: Result<Output, any Error>) {
        self.outcome = outcome
        semaphore.signal()
    }

    /// The outcome, `nil` where there is none by then.
    package func wait(until deadline: Date) -> Result<Output, any Error>? {
        let left = max(0, deadline.timeIntervalSinceNow)
        guard semaphore.wait(timeout: .now() + left) == .success else { return nil }
        return outcome
    }

    package func wait() throws -> Output {
        semaphore.wait()
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }
}
