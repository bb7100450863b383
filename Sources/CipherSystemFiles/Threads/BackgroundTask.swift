internal import Dispatch

/// Work on a separate thread, with a result that can be waited for.
package final class BackgroundTask<Output>: @unchecked Sendable {
    // Unchecked, but thread-safe: only the new thread accesses both properties until it leaves the group, and
    // afterwards only code that has waited for the group.
    private var body: (@Sendable (UpgradeCancellation) throws -> Output)?
    private var outcome: Result<Output, any Error>?
    private let group = DispatchGroup()
    private let cancellation: UpgradeCancellation

    /// Starts `body`, which should check the cancellation regularly.
    ///
    /// - Parameter isLong: Whether the work takes longer than starting a thread; otherwise it runs at once on the
    ///   calling thread.
    package init(
        _ name: String, isLong: Bool = true, _ body: @escaping @Sendable (UpgradeCancellation) throws -> Output
    ) {
        cancellation = UpgradeCancellation()
        self.body = body
        group.enter()
        guard isLong else {
            end(Result { try body(cancellation) })
            return
        }
        do {
            try DetachedThread.start(name) { [self] in
                end(Result { try self.body.map { try $0(cancellation) } })
            }
        } catch {
            end(.failure(error))
        }
    }

    private func end(_ result: Result<Output?, any Error>) {
        outcome = result.flatMap { $0.map(Result.success) ?? .failure(CancellationError()) }
        // The objects that the closure holds, such as connections, are released before a waiting thread continues.
        body = nil
        group.leave()
    }

    /// Waits until the work has ended, and returns its result.
    package func wait() throws -> Output {
        group.wait()
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }

    /// Cancels the work and waits until it has ended, because no file may be removed while a thread reads it.
    package func cancel() {
        cancellation.cancel()
        group.wait()
    }
}
