internal import Foundation

/// An outcome that a thread blocks for.
final class BlockingAnswer<Output: Sendable>: @unchecked Sendable {
    // Written before the semaphore is signalled, and read after waiting for it.
    private var outcome: Result<Output, any Error>?
    private let semaphore = DispatchSemaphore(value: 0)

    func give(_ outcome: Result<Output, any Error>) {
        self.outcome = outcome
        semaphore.signal()
    }

    func wait() throws -> Output {
        semaphore.wait()
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }
}
