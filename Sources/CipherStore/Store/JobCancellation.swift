internal import CipherSystemFiles

/// Forwards a task's cancellation to its job, even if the cancellation comes before the job exists.
final class JobCancellation: @unchecked Sendable {
    // Both are read and written only under `lock`.
    private let lock = Lock()
    private var isCancelled = false
    private var action: (@Sendable () -> Void)?

    func follow(_ action: @escaping @Sendable () -> Void) {
        let isLate = lock.withLock { () -> Bool in
            self.action = action
            return isCancelled
        }
        if isLate { action() }
    }

    func cancel() {
        let action = lock.withLock { () -> (@Sendable () -> Void)? in
            isCancelled = true
            return self.action
        }
        action?()
    }
}
