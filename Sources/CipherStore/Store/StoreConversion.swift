public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The encryption of a store's legacy database while the store remains in use.
///
/// ```swift
/// if let conversion = store.conversion {
///     for await progress in conversion.progress { bar.value = progress.fraction }
///     let report = try await conversion.value
/// }
/// ```
///
/// The encryption begins when the store is opened. It ends when the encrypted copy has replaced the database, when an
/// error prevents that, or when it is canceled or the store is closed. In every case the store continues, and the next
/// launch starts again if the database is still plaintext. When the store is suspended, the attempt is abandoned, and a
/// new one begins after the store is resumed.
public final class StoreConversion: @unchecked Sendable {
    /// The state of the encryption.
    public enum State: Sendable {
        /// The encryption is running; the progress is that of the latest step.
        case running(UpgradeProgress?)
        /// The encryption cannot continue now, for the associated reason, and tries again within ten seconds. Most
        /// often, another process, or another store of this one, has the database open.
        case waiting(any Error)
        /// The database is encrypted.
        case finished(EncryptionReport)
        /// The encryption ended without success, and the database is plaintext. The next launch tries again.
        case failed(any Error)
    }

    // The properties below are read and written only under `lock`.
    private let lock = Lock()
    private var current = State.running(nil)
    private var waiting: [CheckedContinuation<EncryptionReport, any Error>] = []
    private var followers: [AsyncStream<UpgradeProgress>.Continuation] = []
    private var attempt: UpgradeCancellation?
    private var isPausedNow = false
    /// Whether the encryption may have the database open.
    private var isWorking = false
    /// Called once the encryption no longer has the database open.
    private var idleWaiters: [@Sendable () -> Void] = []
    /// Preserves the log until the first copy.
    private var logKeeper: LogKeeper?
    private var isSuspended = false
    private var isCancelled = false
    private var hasEnded = false
    private var limits = Budget()
    /// The time at which the last rest ended, and the progress at that time.
    private var latestRest = (at: ContinuousClock.now, stage: UpgradeStage?.none, bytes: Int64(0))

    private let job = EnclosingJobs.Job()

    init() {}

    /// The state of the encryption.
    public var state: State { lock.withLock { current } }

    /// The report of the encryption, once it has ended.
    ///
    /// - Throws: The error that ended the encryption: ``StoreError``, with the code `cancelled` after ``cancel()`` and
    ///   if the store was closed. The database is then plaintext.
    public var value: EncryptionReport {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = lock.withLock { () -> Result<EncryptionReport, any Error>? in
                    switch current {
                    case .running, .waiting:
                        waiting.append(continuation)
                        return nil
                    case .finished(let report): return .success(report)
                    case .failed(let error): return .failure(error)
                    }
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        }
    }

    /// The progress from now on; the sequence ends when the encryption ends.
    ///
    /// A slow consumer receives only the latest progress.
    public var progress: AsyncStream<UpgradeProgress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let isOver = lock.withLock { () -> Bool in
                switch current {
                case .finished, .failed: return true
                case .waiting: break
                case .running(let latest): if let latest { continuation.yield(latest) }
                }
                followers.append(continuation)
                return false
            }
            if isOver { continuation.finish() }
        }
    }

    /// Cancels the encryption; the database stays plaintext until the next launch.
    ///
    /// This has no effect once the copy is replacing the database.
    public func cancel() {
        let attempt = lock.withLock { () -> UpgradeCancellation? in
            isCancelled = true
            lock.wakeAll()
            return self.attempt
        }
        attempt?.cancel()
    }

    /// Whether the encryption is paused.
    ///
    /// The log grows meanwhile, because it records what has changed.
    public var isPaused: Bool {
        get { lock.withLock { isPausedNow } }
        set {
            lock.withLock {
                isPausedNow = newValue
                lock.wakeAll()
            }
        }
    }

    /// The limits on the encryption's use of the machine while the store is in use; no limits by default.
    ///
    /// The last step, during which other calls wait, ignores the budget.
    public var budget: Budget {
        get { lock.withLock { limits } }
        set { lock.withLock { limits = newValue } }
    }

    /// A limit on the work of an encryption.
    public struct Budget: Sendable, Equatable {
        /// The fraction of the time in which the encryption works, above 0 and up to 1: with 0.25, it pauses for three
        /// quarters of the time.
        public var share: Double
        /// The number of bytes of the database that each stage may process per second; `nil` for no limit.
        public var bytesPerSecond: Int64?

        /// Creates a budget; without arguments, a budget without limits.
        public init(share: Double = 1, bytesPerSecond: Int64? = nil) {
            self.share = share
            self.bytesPerSecond = bytesPerSecond
        }

        /// Returns how long to rest after some work.
        fileprivate func rest(after work: Duration, on bytes: Int64) -> Duration {
            let byShare = work * (1 / min(1, max(0.01, share)) - 1)
            guard let bytesPerSecond else { return byShare }
            return max(byShare, .seconds(Double(bytes) / Double(max(1, bytesPerSecond))) - work)
        }
    }

    // MARK: For the store

    /// Runs `body` repeatedly until it succeeds, fails for a reason other than a suspension, or is canceled.
    func run(_ body: (UpgradeCancellation) throws -> EncryptionReport) {
        job.run { runHere(body) }
    }

    /// Whether the encryption has not ended.
    var isActive: Bool { lock.withLock { !hasEnded } }

    /// Whether the encryption waits for the calling code, such as an event handler.
    var waitsForCaller: Bool { EnclosingJobs.current.waits(job) }

    private func runHere(_ body: (UpgradeCancellation) throws -> EncryptionReport) {
        var outcome: Result<EncryptionReport, any Error>
        repeat {
            let attempt = UpgradeCancellation()
            let mayRun = lock.withLock { () -> Bool in
                while isSuspended, !isCancelled { lock.wait() }
                self.attempt = attempt
                isWorking = !isCancelled
                return !isCancelled
            }
            guard mayRun else {
                outcome = .failure(StoreError.cancelled(""))
                break
            }
            outcome = Result { try body(attempt) }
            letGo { isWorking = false }
        } while outcome.isFailure && lock.withLock { isSuspended || attempt?.isCancelled == true && !isCancelled }
        end(outcome)
    }

    private func end(_ outcome: Result<EncryptionReport, any Error>) {
        // The attempt that would have released the log may never have begun.
        keep(nil)
        let (waiting, followers) = lock.withLock {
            switch outcome {
            case .success(let report): current = .finished(report)
            case .failure(let error): current = .failed(error)
            }
            hasEnded = true
            lock.wakeAll()
            defer { (self.waiting, self.followers) = ([], []) }
            return (self.waiting, self.followers)
        }
        for continuation in waiting { continuation.resume(with: outcome) }
        for follower in followers { follower.finish() }
    }

    /// Replaces the connection that preserves the log; with `nil`, ends the current one.
    func keep(_ keeper: LogKeeper?) {
        let former = lock.withLock { () -> LogKeeper? in
            defer { logKeeper = keeper }
            return logKeeper
        }
        former?.end()
    }

    /// Records the progress.
    func update(_ progress: UpgradeProgress) {
        let followers = lock.withLock {
            current = .running(progress)
            return self.followers
        }
        for follower in followers { follower.yield(progress) }
    }

    /// Records the reason for waiting.
    func wait(for reason: any Error) { lock.withLock { current = .waiting(reason) } }

    /// Waits for as long as a pause and the budget require.
    func rest() {
        lock.withLock {
            while isPausedNow, mayGoOn { lock.wait() }
            guard case .running(let progress?) = current else { return }
            let isSameStage = progress.stage == latestRest.stage
            let bytes = isSameStage ? max(0, progress.bytes - latestRest.bytes) : 0
            let until = ContinuousClock.now + limits.rest(after: .now - latestRest.at, on: bytes)
            while mayGoOn, ContinuousClock.now < until, lock.wait(until: until) {}
            latestRest = (.now, progress.stage, progress.bytes)
        }
    }

    private var mayGoOn: Bool { !isCancelled && attempt?.isCancelled != true }

    /// Abandons the attempt; the next one waits for ``resume()``.
    func suspend() {
        let attempt = lock.withLock { () -> UpgradeCancellation? in
            isSuspended = true
            lock.wakeAll()
            return self.attempt
        }
        attempt?.cancel()
        lock.withLock { lock.wakeAll() }
        keep(nil)
    }

    func resume() {
        letGo {
            isSuspended = false
            lock.wakeAll()
        }
    }

    /// Calls `body` once the encryption has no file open, or once the store is resumed.
    func whenIdle(_ body: @escaping @Sendable () -> Void) {
        let isIdle = lock.withLock { () -> Bool in
            if isWorking { idleWaiters.append(body) }
            return !isWorking
        }
        if isIdle { body() }
    }

    /// Runs `change` under the lock, and then calls the waiting callbacks.
    private func letGo(_ change: () -> Void) {
        let waiters = lock.withLock {
            change()
            defer { idleWaiters = [] }
            return idleWaiters
        }
        for waiter in waiters { waiter() }
    }

    /// Cancels the encryption, and waits for it to end.
    func endBlocking() {
        cancel()
        lock.withLock { while !hasEnded { lock.wait() } }
    }
}

extension Result {
    fileprivate var isFailure: Bool {
        if case .failure = self { true } else { false }
    }
}
