internal import CipherErrors
internal import CipherSystemFiles

/// The backups that a store makes: they have connections of their own, which a suspension waits for.
package final class RunningBackups: @unchecked Sendable {
    private struct Run {
        let cancellation: UpgradeCancellation
        let job: EnclosingJobs.Job
        var isInterrupted = false
    }

    // These are read and written only under `lock`.
    private let lock = Lock()
    private var running: [Run] = []
    /// Called once none runs.
    private var ends: [@Sendable () -> Void] = []

    /// Runs `body`, which makes a backup.
    ///
    /// - Parameters:
    ///   - cancellation: Ends the backup; an interruption asks for that.
    ///   - refusal: What is thrown where it was interrupted.
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

    /// Takes a backup out, and returns whether it was interrupted and who waits; under `lock`.
    private func end(_ job: EnclosingJobs.Job) -> (Bool, [@Sendable () -> Void]) {
        var isInterrupted = false
        if let index = running.firstIndex(where: { $0.job === job }) {
            isInterrupted = running.remove(at: index).isInterrupted
        }
        guard running.isEmpty else { return (isInterrupted, []) }
        defer { ends = [] }
        return (isInterrupted, ends)
    }

    /// Whether one runs.
    package var areRunning: Bool { lock.withLock { !running.isEmpty } }

    /// Whether the code that asks is run by one of them, which cannot end before it.
    var encloseCaller: Bool {
        let current = EnclosingJobs.current
        return lock.withLock { running.contains { current.contains($0.job) } }
    }

    /// Calls `body` once none runs, or once no one waits for that any more.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let isFree = lock.withLock { () -> Bool in
            if !running.isEmpty { ends.append(body) }
            return running.isEmpty
        }
        if isFree { body() }
    }

    /// Ends those that run.
    func interrupt() {
        let interrupted = lock.withLock { () -> [Run] in
            for index in running.indices { running[index].isInterrupted = true }
            return running
        }
        for run in interrupted { run.cancellation.cancel() }
    }

    /// Lets no one wait any more.
    func release() {
        let waiters = lock.withLock {
            defer { ends = [] }
            return ends
        }
        for waiter in waiters { waiter() }
    }
}
