internal import Dispatch

/// Work on a separate thread, with a result that is waited for.
package final class BackgroundTask<Output>: @unchecked Sendable {
    // Unchecked, and safe between threads: both are touched by the thread alone until it leaves the group, and afterwards by
    // who has waited for that.
    private var body: (@Sendable (UpgradeCancellation) throws -> Output)?
    private var outcome: Result<Output, any Error>?
    private let group = DispatchGroup()
    private let cancellation: UpgradeCancellation

    /// Starts `body`, which looks at the cancellation now and then.
    ///
    /// - Parameter isLong: Whether it takes longer than starting a thread for it; else it is done here and now.
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
        // What it holds, such as connections, ends before whoever waits goes on.
        body = nil
        group.leave()
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
