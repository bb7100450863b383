public import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The encryption of a store's legacy database while the store is read and written.
///
/// ```swift
/// for await progress in store.conversion?.progress ?? .finished { bar.value = progress.fraction }
/// let report = try await store.conversion?.value
/// ```
///
/// It begins when the store is opened, and ends when the encrypted copy has taken the database's place, when something keeps
/// it from that, or when it is cancelled or the store is closed. Whatever ends it, the store goes on, and the next launch
/// begins anew where the database is still plaintext. While the store is suspended it is given up, and begins anew afterwards.
public final class StoreConversion: @unchecked Sendable {
    /// How far it is.
    public enum State: Sendable {
        /// It works; the progress is that of the latest step.
        case running(UpgradeProgress?)
        /// It cannot go on now, for the reason given, and tries again within ten seconds: most often another process has the
        /// database open.
        case waiting(any Error)
        /// The database is encrypted.
        case finished(EncryptionReport)
        /// It ended without that, and the database is plaintext.
        case failed(any Error)
    }

    // These are read and written only under `lock`.
    private let lock = Lock()
    private var current = State.running(nil)
    private var waiting: [CheckedContinuation<EncryptionReport, any Error>] = []
    private var followers: [AsyncStream<UpgradeProgress>.Continuation] = []
    private var attempt: UpgradeCancellation?
    private var isPausedNow = false
    /// Whether it may have the database open.
    private var isWorking = false
    /// Called once it has not.
    private var idleWaiters: [@Sendable () -> Void] = []
    /// Keeps the log until the first copy.
    private var logKeeper: LogKeeper?
    private var isSuspended = false
    private var isCancelled = false
    private var hasEnded = false
    private var limits = Budget()
    /// When it last rested, and how far it was.
    private var latestRest = (at: ContinuousClock.now, stage: UpgradeStage?.none, bytes: Int64(0))

    private let job = EnclosingJobs.Job()

    init() {}

    /// How far it is.
    public var state: State { lock.withLock { current } }

    /// Its report, once it has ended.
    ///
    /// - Throws: What ended it: ``StoreError``, with `cancelled` after ``cancel()`` and when the store was closed. The
    ///   database is plaintext then.
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

    /// How far it is from now on; ends when it has ended.
    ///
    /// Who is slower than the conversion gets the latest.
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

    /// Ends it; the database stays plaintext until the next launch.
    ///
    /// Once the copy takes the database's place it is too late.
    public func cancel() {
        let attempt = lock.withLock { () -> UpgradeCancellation? in
            isCancelled = true
            lock.wakeAll()
            return self.attempt
        }
        attempt?.cancel()
    }

    /// Whether it is to wait where it is.
    ///
    /// The log grows meanwhile, for it tells what has changed.
    public var isPaused: Bool {
        get { lock.withLock { isPausedNow } }
        set {
            lock.withLock {
                isPausedNow = newValue
                lock.wakeAll()
            }
        }
    }

    /// What it may use of the machine while the store works; all of it at first.
    ///
    /// The last step, for which other calls wait, takes what it needs.
    public var budget: Budget {
        get { lock.withLock { limits } }
        set { lock.withLock { limits = newValue } }
    }

    /// What a conversion may use of the machine.
    public struct Budget: Sendable, Equatable {
        /// The share of the time in which it works, above 0 and up to 1: with 0.25 it rests for three quarters.
        public var share: Double
        /// How much of the database it goes through in a second, in bytes, in each of its stages; `nil` for no limit.
        public var bytesPerSecond: Int64?

        /// Makes a budget; without parameters, one without limits.
        public init(share: Double = 1, bytesPerSecond: Int64? = nil) {
            self.share = share
            self.bytesPerSecond = bytesPerSecond
        }

        /// How long to rest after some work.
        fileprivate func rest(after work: Duration, on bytes: Int64) -> Duration {
            let byShare = work * (1 / min(1, max(0.01, share)) - 1)
            guard let bytesPerSecond else { return byShare }
            return max(byShare, .seconds(Double(bytes) / Double(max(1, bytesPerSecond))) - work)
        }
    }

    // MARK: For the store

    /// Runs `body` again and again until it succeeds, fails for another reason than a suspension, or is cancelled.
    func run(_ body: (UpgradeCancellation) throws -> EncryptionReport) {
        job.run { runHere(body) }
    }

    /// Whether it waits for the code that asks, such as a handler of events.
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

    /// Keeps the log by one more connection, or lets it go.
    func keep(_ keeper: LogKeeper?) {
        let former = lock.withLock { () -> LogKeeper? in
            defer { logKeeper = keeper }
            return logKeeper
        }
        former?.end()
    }

    /// Takes note of how far it is.
    func update(_ progress: UpgradeProgress) {
        let followers = lock.withLock {
            current = .running(progress)
            return self.followers
        }
        for follower in followers { follower.yield(progress) }
    }

    /// Takes note of what it waits for.
    func wait(for reason: any Error) { lock.withLock { current = .waiting(reason) } }

    /// Waits as long as pauses and the budget say.
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

    /// Gives the attempt up, and has the next one wait for ``resume()``.
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

    /// Calls `body` once it has no file open, or once nobody waits for that any more.
    func whenIdle(_ body: @escaping @Sendable () -> Void) {
        let isIdle = lock.withLock { () -> Bool in
            if isWorking { idleWaiters.append(body) }
            return !isWorking
        }
        if isIdle { body() }
    }

    /// Runs `change` under the lock, and calls who waits.
    private func letGo(_ change: () -> Void) {
        let waiters = lock.withLock {
            change()
            defer { idleWaiters = [] }
            return idleWaiters
        }
        for waiter in waiters { waiter() }
    }

    /// Cancels it, and waits for its end.
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
