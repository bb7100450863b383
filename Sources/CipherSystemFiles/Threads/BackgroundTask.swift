internal import Dispatch

/// Work on a thread of its own, with a result that is waited for.
package final class BackgroundTask<Output>: @unchecked Sendable {
    // `outcome` is written by the thread before it leaves the group and read after waiting for it.
    private var outcome: Result<Output, any Error>?
    private let group = DispatchGroup()
    private let cancellation: UpgradeCancellation

    /// Starts `body`, which looks at the cancellation now and then.
    package init(_ name: String, _ body: @escaping @Sendable (UpgradeCancellation) throws -> Output) {
        let cancellation = UpgradeCancellation()
        self.cancellation = cancellation
        group.enter()
        do {
            try DetachedThread.start(name) { [self] in
                outcome = Result { try body(cancellation) }
                group.leave()
            }
        } catch {
            outcome = .failure(error)
            group.leave()
        }
    }

    /// Waits for the end.
    package func wait() throws -> Output {
        group.wait()
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }

    /// Asks for the end and waits for it: no file may be removed under a thread that reads it.
    package func cancel() {
        cancellation.cancel()
        group.wait()
    }
}
