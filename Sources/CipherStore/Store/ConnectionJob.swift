package import CipherSQLite
internal import CipherSystemFiles

/// One read or write: it waits, runs on one connection, and delivers one result.
///
/// A cancellation reaches the connection only while this job's own closure runs on it: never during `BEGIN` or
/// `COMMIT`, and never during the next job.
package final class ConnectionJob: @unchecked Sendable {
    /// Delivers the outcome to the caller that waits for it.
    typealias Delivery = @Sendable () -> Void

    /// What a job does.
    private enum Work {
        case onConnection(@Sendable (Connection, ConnectionJob) -> Delivery)
        case withoutConnection(@Sendable (ConnectionJob) -> Delivery)
    }

    // `reason` and `ending` are read and written only under `lock`. All other properties except `awaited` never change.
    private let lock = Lock()
    /// The reason for the cancellation; `nil` if the job was not canceled.
    private var reason: (any Error)?
    /// Ends the job's current work.
    private var ending: (@Sendable () -> Void)?
    /// The job whose closure waits for this one.
    let caller: ConnectionJob?
    /// What the closure waits for; read and written only by ``ConnectionQueue``, under the lock of its wait cycles.
    var awaited: (any Awaitable)?
    let store: StoreIdentity
    /// Whether the connection must not be used again.
    let spendsConnection: Bool
    private let work: Work
    private let refusal: @Sendable (any Error) -> Void

    /// Creates a job whose result is that of `body` in a transaction.
    package init<Output: Sendable>(
        _ transaction: StoreTransaction, of store: StoreIdentity, calledBy caller: ConnectionJob? = nil,
        _ body: @escaping @Sendable (Connection) throws -> Output,
        completion: @escaping @Sendable (Result<Output, any Error>) -> Void
    ) {
        self.store = store
        self.caller = caller
        spendsConnection = transaction == .perStatement
        work = .onConnection { connection, job in
            let outcome = Result { try transaction.run(on: connection, as: job, body) }
            return { completion(outcome) }
        }
        refusal = { completion(.failure($0)) }
    }

    /// Creates a job whose result is that of `body`, which runs while the worker has no connection.
    init<Output: Sendable>(
        withoutConnectionOf store: StoreIdentity, calledBy caller: ConnectionJob?,
        _ body: @escaping @Sendable (ConnectionJob) throws -> Output,
        completion: @escaping @Sendable (Result<Output, any Error>) -> Void
    ) {
        self.store = store
        self.caller = caller
        spendsConnection = false
        work = .withoutConnection { job in
            let outcome = Result { try body(job) }
            return { completion(outcome) }
        }
        refusal = { completion(.failure($0)) }
    }

    /// Whether the job runs on a connection.
    var needsConnection: Bool {
        if case .onConnection = work { true } else { false }
    }

    /// Runs the job.
    ///
    /// The caller delivers the result after taking back the connection.
    func run(on connection: Connection?) -> Delivery {
        switch (work, connection) {
        case (.onConnection(let work), let connection?): work(connection, self)
        case (.withoutConnection(let work), _): work(self)
        case (.onConnection, nil): {}
        }
    }

    /// Runs `body` in a read transaction on a connection opened for this read.
    func read<Output>(
        on access: ConnectionAccess, _ body: @escaping (Connection) throws -> Output
    ) throws -> Output {
        var output: Output?
        try access { output = try StoreTransaction.read.run(on: $0, as: self, body) }
        guard let output else { throw CancellationError() }
        return output
    }

    /// Delivers an error instead of running.
    func refuse(_ error: any Error) { refusal(error) }

    /// Whether the job's closure, or a closure that waits for it, belongs to this store.
    func holds(_ store: StoreIdentity) -> Bool { self.store === store || caller?.holds(store) == true }

    // MARK: Cancellation

    var isCancelled: Bool { lock.withLock { reason != nil } }

    /// The error that a canceled job throws.
    var cancellation: any Error { lock.withLock { reason } ?? CancellationError() }

    /// Ends the job's current work.
    ///
    /// The caller must remove a waiting job from its queue.
    ///
    /// - Parameter reason: The error that the job throws; only the first one is used.
    func cancel(_ reason: any Error = CancellationError()) {
        lock.withLock {
            self.reason = self.reason ?? reason
            ending?()
        }
    }

    /// Runs `body`, which a cancellation ends.
    ///
    /// - Throws: The reason for the cancellation if the job was canceled before `body` ended, whatever the outcome of
    ///   `body`.
    func whileInterruptible<Output>(
        _ connection: Connection, inTransaction: Bool = true, _ body: (Connection) throws -> Output
    ) throws -> Output {
        let interrupter = connection.interrupter
        return try whileCancellable {
            interrupter.interrupt()
        } body: {
            // An interrupt between two statements does not affect the second one; this handler ends it after a thousand
            // steps.
            connection.setProgressHandler(every: 1_000) { [self] in !isCancelled }
            defer { connection.setProgressHandler(every: 0, nil) }
            return try connection.lend(inTransaction: inTransaction, body)
        }
    }

    /// Runs `body`; a cancellation calls `ending` to end it.
    func whileCancellable<Output>(
        by ending: @escaping @Sendable () -> Void, body: () throws -> Output
    ) throws -> Output {
        guard begin(ending) else { throw cancellation }
        let outcome = Result { try body() }
        guard end() else { throw cancellation }
        return try outcome.get()
    }

    private func begin(_ ending: @escaping @Sendable () -> Void) -> Bool {
        lock.withLock {
            guard reason == nil else { return false }
            self.ending = ending
            return true
        }
    }

    private func end() -> Bool {
        lock.withLock {
            ending = nil
            return reason == nil
        }
    }
}

/// Provides a connection to a closure, once.
typealias ConnectionAccess = @Sendable ((Connection) throws -> Void) throws -> Void

/// Identifies the store to which a job belongs.
package final class StoreIdentity: Sendable {
    /// The broadcaster of its commits.
    let changes = ChangeBroadcaster()
    /// The log of its events.
    let events: EventLog

    package convenience init() { self.init(EventLog(database: "", tell: nil)) }

    init(_ events: EventLog) {
        self.events = events
    }
}
