internal import CipherErrors

extension DetachedThread {
    /// Runs `body` on a separate thread, and forwards the task's cancellation to it.
    ///
    /// - Throws: Any error thrown by `body`; `CancellationError` if `body` ended because of the cancellation.
    package static func cancellable<Output: Sendable>(
        _ body: @escaping @Sendable (UpgradeCancellation) throws -> Output
    ) async throws -> Output {
        let cancellation = UpgradeCancellation()
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            do {
                return try await run { try body(cancellation) }
            } catch let error as StoreError where error.code == .cancelled {
                throw CancellationError()
            }
        } onCancel: {
            cancellation.cancel()
        }
    }

    /// Runs `body` on a new thread, because it may take a long time and may block.
    package static func run<Output: Sendable>(
        _ body: @escaping @Sendable () throws -> Output
    ) async throws -> Output {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try start("open") {
                    continuation.resume(with: Result { try body() })
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
