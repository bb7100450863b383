internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles
internal import Dispatch

/// Provides connections of one kind, opened as they are needed, in first-come, first-served order.
///
/// With a capacity of one connection it is a queue of writes; with a larger capacity, a pool of readers.
package final class ConnectionQueue: @unchecked Sendable {
    /// How new jobs are treated.
    private enum Admission {
        case taken
        case suspended
        case closed
    }

    // The properties below are read and written only under `lock`; all other properties never change.
    private let lock = Lock()
    private var idle: [ConnectionWorker] = []
    private var waiting: ArraySlice<ConnectionJob> = []
    /// The number of workers, idle or not.
    private var workers = 0
    private var admission = Admission.taken
    /// The number of times that the queue resumed after a suspension.
    private var resumptions = 0
    /// Called once no job runs or waits and the connections are closed.
    private var ends: [@Sendable () -> Void] = []
    private var isHeld = false
    /// Called once no job runs and the connections are closed, while the queue is held.
    private var held: (@Sendable () -> Void)?
    /// The running jobs, read and written only under `circles`, because a wait cycle may span several queues.
    private(set) var running: [ConnectionJob] = []
    /// The job for which the queue is held; also read and written only under `circles`.
    private(set) var holder: ConnectionJob?
    static let circles = Lock()

    private let name: String
    let path: String
    let capacity: Int
    let identity: StoreIdentity
    /// The error with which the queue refuses every job; `nil` if it accepts jobs.
    private let refusal: StoreError?
    private let open: @Sendable () throws -> Connection

    /// Creates a queue without open connections.
    ///
    /// - Parameter refusal: The error with which it refuses every job.
    package init(
        _ name: String, path: String, capacity: Int, identity: StoreIdentity, refusing refusal: StoreError? = nil,
        open: @escaping @Sendable () throws -> Connection
    ) {
        self.refusal = refusal
        if refusal != nil { admission = .closed }
        self.name = name
        self.path = path
        self.capacity = capacity
        self.identity = identity
        self.open = open
    }

    // MARK: Running

    /// Runs `body` in a transaction and suspends until it has ended.
    package func run<Output: Sendable>(
        _ transaction: StoreTransaction, _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await run { [identity] in ConnectionJob(transaction, of: identity, body, completion: $0) }
    }

    /// Runs `body` in a transaction and blocks the thread until it has ended.
    ///
    /// - Throws: ``StoreError`` with the code `misuse` if the call would wait for itself: inside a closure of the same
    ///   store, through another store's closure, or if closures of several stores would wait for each other.
    package func runBlocking<Output: Sendable>(
        _ transaction: StoreTransaction, _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try runBlocking { [identity] caller, completion in
            ConnectionJob(transaction, of: identity, calledBy: caller, body, completion: completion)
        }
    }

    /// Runs `body` in a read transaction on a connection that `access` provides, and suspends until it has ended.
    func run<Output: Sendable>(
        on access: @escaping ConnectionAccess, _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await run { [identity] in
            ConnectionJob(
                withoutConnectionOf: identity, calledBy: nil, { try $0.read(on: access, body) }, completion: $0)
        }
    }

    /// Does the same, but blocks the calling thread.
    func runBlocking<Output: Sendable>(
        on access: @escaping ConnectionAccess, _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try runBlocking { [identity] caller, completion in
            ConnectionJob(
                withoutConnectionOf: identity, calledBy: caller, { try $0.read(on: access, body) },
                completion: completion)
        }
    }

    private typealias Completion<Output> = @Sendable (Result<Output, any Error>) -> Void

    private func run<Output: Sendable>(
        _ makeJob: (@escaping Completion<Output>) -> ConnectionJob
    ) async throws -> Output {
        // The handler of a canceled task runs concurrently with the job, which could end first.
        try Task.checkCancellation()
        let cancellation = JobCancellation()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let job = makeJob { continuation.resume(with: $0) }
                submit(job)
                cancellation.follow { [self] in cancel(job) }
            }
        } onCancel: {
            cancellation.cancel()
        }
    }

    private func runBlocking<Output: Sendable>(
        _ makeJob: (ConnectionJob?, @escaping Completion<Output>) -> ConnectionJob
    ) throws -> Output {
        try Self.waiting(for: self, identity, path) { caller in
            let answer = BlockingAnswer<Output>()
            submit(makeJob(caller) { answer.give($0) })
            return try answer.wait()
        }
    }

    package func submit(_ job: ConnectionJob) {
        let (start, refusal) = lock.withLock { () -> (Start?, StoreError?) in
            switch admission {
            case .taken:
                waiting.append(job)
                return (next(), nil)
            case .suspended: return (nil, suspendedError)
            case .closed: return (nil, closedError)
            }
        }
        run(start)
        if let refusal { job.refuse(refusal) }
    }

    private typealias Start = (job: ConnectionJob, worker: ConnectionWorker)

    /// Returns the job that may run now, with its worker; call under `lock`.
    private func next() -> Start? {
        guard !isHeld, let job = waiting.first, let worker = idle.popLast() ?? newWorker() else { return nil }
        waiting.removeFirst()
        // Without this, the empty slice would retain the job and everything that its closure captures.
        if waiting.isEmpty { waiting = [] }
        Self.circles.withLock { running.append(job) }
        return (job, worker)
    }

    private func newWorker() -> ConnectionWorker? {
        guard workers < capacity else { return nil }
        workers += 1
        return ConnectionWorker("\(name) \(workers)", open: open)
    }

    private func run(_ start: Start?) {
        guard let (job, worker) = start else { return }
        worker.run(job) { [self] worker in
            Self.circles.withLock {
                running.removeAll { $0 === job }
                // Cleared at once, because the next job of this queue may check for cycles before the caller continues.
                job.caller?.awaited = nil
            }
            let (start, rest) = lock.withLock { () -> (Start?, Rest?) in
                idle.append(worker)
                return (next(), resting())
            }
            run(start)
            close(rest)
        }
    }

    private func cancel(_ job: ConnectionJob) {
        job.cancel()
        let wasWaiting = lock.withLock { () -> Bool in
            guard let position = waiting.firstIndex(where: { $0 === job }) else { return false }
            waiting.remove(at: position)
            return true
        }
        if wasWaiting { job.refuse(CancellationError()) }
    }

    // MARK: Ending

    /// Whether the queue is closed to new jobs.
    var isStopped: Bool { lock.withLock { admission == .closed } }

    /// Refuses waiting and future jobs.
    func stop() {
        let refused = lock.withLock { () -> ArraySlice<ConnectionJob> in
            admission = .closed
            defer { waiting = [] }
            return waiting
        }
        for job in refused { job.refuse(closedError) }
    }

    /// Closes the connections as soon as the jobs have ended, and then calls `closed`.
    package func close(_ closed: @escaping @Sendable () -> Void) {
        stop()
        whenEnded(closed)
    }

    /// Calls `body` once no job runs or waits and the connections are closed; at once if the queue accepts jobs.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let (rest, takesJobs) = lock.withLock { () -> (Rest?, Bool) in
            guard admission != .taken else { return (nil, true) }
            ends.append(body)
            return (resting(), false)
        }
        if takesJobs { body() }
        close(rest)
    }

    private typealias Rest = (workers: [ConnectionWorker], waiters: [@Sendable () -> Void])

    /// Returns the workers whose connections should be closed now, and the callbacks that wait for that; call under
    /// `lock`.
    private func resting() -> Rest? {
        guard idle.count == workers else { return nil }
        if let held {
            self.held = nil
            return (idle, [held])
        }
        guard !isHeld, waiting.isEmpty, !ends.isEmpty else { return nil }
        defer { ends = [] }
        return (idle, ends)
    }

    /// Closes the workers' connections, and then calls the waiting callbacks.
    ///
    /// The connections close one after the other. The last one to close moves the log into the file, and if two closed
    /// at the same time, each would mistake the other for a connection that still uses the file.
    private func close(_ rest: Rest?) {
        guard let rest else { return }
        guard let worker = rest.workers.last else {
            return DispatchQueue.global(qos: .userInitiated).async { for waiter in rest.waiters { waiter() } }
        }
        worker.close { [self] in close((rest.workers.dropLast(), rest.waiters)) }
    }

    var closedError: StoreError {
        refusal ?? StoreError(.closed, path: path, "the store was closed", advice: "open it again")
    }

    // MARK: Suspension

    var isSuspended: Bool { lock.withLock { admission == .suspended } }

    /// Whether a suspension is still in effect.
    func isSuspended(_ suspension: Int) -> Bool {
        lock.withLock { admission == .suspended && resumptions == suspension }
    }

    /// Refuses jobs from now on; jobs already accepted run to their end.
    ///
    /// - Returns: The number by which ``interrupt(_:)`` identifies this suspension.
    package func suspend() -> Int {
        lock.withLock {
            if admission == .taken { admission = .suspended }
            return resumptions
        }
    }

    /// Cancels the running and waiting jobs if a suspension is still in effect.
    package func interrupt(_ suspension: Int) {
        let refused = lock.withLock { () -> ArraySlice<ConnectionJob> in
            guard admission == .suspended, resumptions == suspension else { return [] }
            for job in Self.circles.withLock({ running }) { job.cancel(suspendedError) }
            defer { waiting = [] }
            return waiting
        }
        for job in refused { job.refuse(suspendedError) }
    }

    /// Accepts jobs again, unless the queue was closed.
    package func resume() {
        let waiters = lock.withLock { () -> [@Sendable () -> Void] in
            guard admission == .suspended else { return [] }
            admission = .taken
            resumptions += 1
            defer { ends = [] }
            return ends
        }
        for waiter in waiters { waiter() }
    }

    var suspendedError: StoreError {
        StoreError(.suspended, path: path, "the store is suspended", advice: "call resume() first", changed: .nothing)
    }

    // MARK: Holding

    /// Runs `body` while neither this queue, which has one worker, nor `other` has a connection; jobs wait meanwhile.
    ///
    /// - Parameter limit: How long to wait for running jobs of `other`; `nil` for no limit.
    /// - Throws: Any error thrown by `body`; ``ReadsGoOn`` after the limit.
    func runAlone<Output: Sendable>(
        with other: ConnectionQueue, waiting limit: Duration? = nil,
        _ body: @escaping @Sendable (UpgradeCancellation) throws -> Output
    ) async throws -> Output {
        try await run { [identity] in
            ConnectionJob(
                withoutConnectionOf: identity, calledBy: nil, { try other.holdingBack(for: $0, limit, body) },
                completion: $0)
        }
    }

    /// Does the same, but blocks the calling thread.
    func runAloneBlocking<Output: Sendable>(
        with other: ConnectionQueue, waiting limit: Duration? = nil,
        _ body: @escaping @Sendable (UpgradeCancellation) throws -> Output
    ) throws -> Output {
        try runBlocking { [identity] caller, completion in
            ConnectionJob(
                withoutConnectionOf: identity, calledBy: caller, { try other.holdingBack(for: $0, limit, body) },
                completion: completion)
        }
    }

    /// Runs `body` while no job of this queue runs and no connection is open.
    ///
    /// If `body` succeeded, its result is returned even if the job was canceled at its end.
    private func holdingBack<Output>(
        for job: ConnectionJob, _ limit: Duration?, _ body: (UpgradeCancellation) throws -> Output
    ) throws -> Output {
        let (cancellation, isFree) = (UpgradeCancellation(), BlockingAnswer<Void>())
        var output: Output?
        defer { release() }
        do {
            try job.whileCancellable {
                cancellation.cancel()
                isFree.give(.failure(CancellationError()))
            } body: {
                try Self.note(job, waitsFor: QueuesEnd([self]), path) { holder = job }
                defer { Self.circles.withLock { job.awaited = nil } }
                hold { isFree.give(.success(())) }
                if let limit, isFree.wait(until: .now + limit) == nil, Self.circles.withLock({ !running.isEmpty }) {
                    throw ReadsGoOn()
                }
                // If nothing runs any more, the connections are about to be closed.
                try isFree.wait()
                Self.circles.withLock { job.awaited = nil }
                output = try body(cancellation)
            }
        } catch {
            guard output != nil else { throw error }
        }
        guard let output else { throw CancellationError() }
        return output
    }

    private func hold(_ free: @escaping @Sendable () -> Void) {
        let rest = lock.withLock { () -> Rest? in
            isHeld = true
            held = free
            return resting()
        }
        close(rest)
    }

    private func release() {
        Self.circles.withLock { holder = nil }
        let (starts, rest) = lock.withLock { () -> ([Start], Rest?) in
            isHeld = false
            held = nil
            var starts: [Start] = []
            while let start = next() { starts.append(start) }
            return (starts, resting())
        }
        for start in starts { run(start) }
        close(rest)
    }
}

/// Jobs of a queue continued for longer than the limit.
package struct ReadsGoOn: Error {}
