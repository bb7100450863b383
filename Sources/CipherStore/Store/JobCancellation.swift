internal import CipherSystemFiles

/// Joins a task's cancellation, which may come before there is a job, with the job.
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
