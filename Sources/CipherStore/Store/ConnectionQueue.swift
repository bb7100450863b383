internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// Hands out connections of one kind, opened as they are needed: first come, first served.
///
/// With room for one connection it makes a queue of writers; with room for several, a pool of readers.
package final class ConnectionQueue: @unchecked Sendable {
    // These are read and written only under `lock`; the rest never changes.
    private let lock = Lock()
    private var idle: [ConnectionWorker] = []
    private var waiting: ArraySlice<ConnectionJob> = []
    /// Workers that exist, idle or not.
    private var workers = 0
    private var isClosed = false
    private var closings: [@Sendable () -> Void] = []
    /// The jobs that run: read and written only under `circles`, for a circle goes through several queues.
    private var running: [ConnectionJob] = []
    private static let circles = Lock()

    private let name: String
    private let path: String
    private let capacity: Int
    private let identity: StoreIdentity
    private let open: @Sendable () throws -> Connection

    /// A queue without connections.
    package init(
        _ name: String, path: String, capacity: Int, identity: StoreIdentity,
        open: @escaping @Sendable () throws -> Connection
    ) {
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
        // The handler of a cancelled task runs beside the job, which could end first.
        try Task.checkCancellation()
        let cancellation = JobCancellation()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let job = ConnectionJob(transaction, of: identity, body) { continuation.resume(with: $0) }
                submit(job)
                cancellation.follow { [self] in cancel(job) }
            }
        } onCancel: {
            cancellation.cancel()
        }
    }

    /// Runs `body` in a transaction and blocks the thread until it has ended.
    ///
    /// - Throws: ``StoreError`` with `misuse` where it would wait for itself: inside of a closure of the same store, by way
    ///   of another store's closure, or where closures of several stores would wait for each other.
    package func runBlocking<Output: Sendable>(
        _ transaction: StoreTransaction, _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        let caller = ConnectionWorker.currentJob
        try Self.refuseNesting(identity, path)
        if let caller { try wait(caller) }
        defer { if let caller { Self.circles.withLock { caller.awaited = nil } } }
        let answer = BlockingAnswer<Output>()
        submit(ConnectionJob(transaction, of: identity, calledBy: caller, body) { answer.give($0) })
        return try answer.wait()
    }

    /// - Throws: ``StoreError`` with `misuse` inside of a closure that the store waits for.
    static func refuseNesting(_ identity: StoreIdentity, _ path: String) throws {
        guard ConnectionWorker.currentJob?.holds(identity) == true else { return }
        throw StoreError(
            .misuse, path: path, "a closure of the store called the store again and would wait for itself",
            advice: "use the connection that the closure is given")
    }

    /// Notes that a job's closure waits in this queue, unless it would wait for ever.
    private func wait(_ caller: ConnectionJob) throws {
        try Self.circles.withLock {
            caller.awaited = self
            guard isStuck([]) else { return }
            caller.awaited = nil
            throw StoreError(
                .misuse, path: path,
                "closures of several stores called each other's stores and would wait for each other",
                advice: "call the stores one after the other, or always in the same order")
        }
    }

    /// Whether the closures on all its connections wait in queues of which this is so.
    private func isStuck(_ seen: [ConnectionQueue]) -> Bool {
        seen.contains { $0 === self }
            || running.count == capacity && running.allSatisfy { $0.awaited?.isStuck(seen + [self]) == true }
    }

    package func submit(_ job: ConnectionJob) {
        enum Answer {
            case wait
            case run(ConnectionWorker)
            case refuse(StoreError)
        }
        let answer = lock.withLock { () -> Answer in
            if isClosed { return .refuse(closedError) }
            if let worker = idle.popLast() { return .run(worker) }
            guard workers < capacity else {
                waiting.append(job)
                return .wait
            }
            workers += 1
            return .run(ConnectionWorker("\(name) \(workers)", open: open))
        }
        switch answer {
        case .wait: break
        case .run(let worker): run(job, on: worker)
        case .refuse(let error): job.refuse(error)
        }
    }

    private func run(_ job: ConnectionJob, on worker: ConnectionWorker) {
        Self.circles.withLock { running.append(job) }
        worker.run(job) { [self] worker in
            Self.circles.withLock {
                running.removeAll { $0 === job }
                // At once: the next job of this queue may look before the caller goes on.
                job.caller?.awaited = nil
            }
            takeBack(worker)
        }
    }

    private func takeBack(_ worker: ConnectionWorker) {
        let (next, closes) = lock.withLock { () -> (ConnectionJob?, Bool) in
            if let next = waiting.popFirst() { return (next, false) }
            if !isClosed { idle.append(worker) }
            return (nil, isClosed)
        }
        if let next { run(next, on: worker) }
        if closes { close(worker) }
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

    // MARK: Closing

    /// Whether it takes no more jobs.
    var isStopped: Bool { lock.withLock { isClosed } }

    /// Refuses the jobs that wait and those to come.
    func stop() {
        let refused = lock.withLock { () -> ArraySlice<ConnectionJob> in
            isClosed = true
            defer { waiting = [] }
            return waiting
        }
        for job in refused { job.refuse(closedError) }
    }

    /// Closes each connection as soon as its job has ended, and calls `closed` after the last.
    package func close(_ closed: @escaping @Sendable () -> Void) {
        stop()
        let (free, isEmpty) = lock.withLock { () -> ([ConnectionWorker], Bool) in
            defer { idle = [] }
            if workers > 0 { closings.append(closed) }
            return (idle, workers == 0)
        }
        if isEmpty { closed() }
        for worker in free { close(worker) }
    }

    private func close(_ worker: ConnectionWorker) {
        worker.close { [self] in
            let done = lock.withLock { () -> [@Sendable () -> Void] in
                workers -= 1
                guard workers == 0 else { return [] }
                defer { closings = [] }
                return closings
            }
            for closed in done { closed() }
        }
    }

    var closedError: StoreError {
        StoreError(.closed, path: path, "the store was closed", advice: "open it again")
    }
}
