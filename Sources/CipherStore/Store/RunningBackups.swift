internal import CipherErrors
internal import CipherSystemFiles

/// The running backups of a store.
///
/// They have their own connections, so a suspension must wait for them.
package final class RunningBackups: @unchecked Sendable {
    private struct Run {
        let cancellation: UpgradeCancellation
        let job: EnclosingJobs.Job
        var isInterrupted = false
    }

    // The properties below are read and written only under `lock`.
    private let lock = Lock()
    private var running: [Run] = []
    /// Called once no backup runs.
    private var ends: [@Sendable () -> Void] = []

    /// Runs `body`, which performs a backup.
    ///
    /// - Parameters:
    ///   - cancellation: The cancellation of the backup; an interruption triggers it.
    ///   - refusal: The error to throw if the backup was interrupted.
    func run<Output>(
        _ cancellation: UpgradeCancellation, interrupted refusal: StoreError, _ body: () throws -> Output
    ) throws -> Output {
        let job = EnclosingJobs.Job()
        lock.withLock { running.append(Run(cancellation: cancellation, job: job)) }
        let outcome = Result { try job.run(body) }
        let (isInterrupted, waiters) = lock.withLock { end(job) }
        for waiter in waiters { waiter() }
        do {
            return try outcome.get()
        } catch let error as StoreError where error.code == .cancelled && isInterrupted {
            throw refusal
        }
    }

    /// Removes a backup, and returns whether the backup was interrupted and which callbacks wait; call under `lock`.
    private func end(_ job: EnclosingJobs.Job) -> (Bool, [@Sendable () -> Void]) {
        var isInterrupted = false
        if let index = running.firstIndex(where: { $0.job === job }) {
            isInterrupted = running.remove(at: index).isInterrupted
        }
        guard running.isEmpty else { return (isInterrupted, []) }
        defer { ends = [] }
        return (isInterrupted, ends)
    }

    /// Whether at least one backup is running.
    package var areRunning: Bool { lock.withLock { !running.isEmpty } }

    /// Whether the calling code is run by one of the backups, which then cannot end before that code does.
    var encloseCaller: Bool {
        let current = EnclosingJobs.current
        return lock.withLock { running.contains { current.contains($0.job) } }
    }

    /// Calls `body` once no backup runs, or once ``release()`` is called.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let isFree = lock.withLock { () -> Bool in
            if !running.isEmpty { ends.append(body) }
            return running.isEmpty
        }
        if isFree { body() }
    }

    /// Cancels the running backups.
    func interrupt() {
        let interrupted = lock.withLock { () -> [Run] in
            for index in running.indices { running[index].isInterrupted = true }
            return running
        }
        for run in interrupted { run.cancellation.cancel() }
    }

    /// Calls all waiting callbacks at once.
    func release() {
        let waiters = lock.withLock {
            defer { ends = [] }
            return ends
        }
        for waiter in waiters { waiter() }
    }
}
