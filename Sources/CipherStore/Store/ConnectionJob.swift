package import CipherSQLite
internal import CipherSystemFiles

/// One read or write on its way: it waits, runs on one connection, and is answered once.
///
/// A cancellation reaches the connection only while this job's own closure runs on it: never `BEGIN` and `COMMIT`, and
/// never the next job.
package final class ConnectionJob: @unchecked Sendable {
    /// Hands the outcome to whoever waits for it.
    typealias Delivery = @Sendable () -> Void

    /// What a job does.
    private enum Work {
        case onConnection(@Sendable (Connection, ConnectionJob) -> Delivery)
        case withoutConnection(@Sendable (ConnectionJob) -> Delivery)
    }

    // `reason` and `ending` are read and written only under `lock`; the rest but `awaited` never changes.
    private let lock = Lock()
    /// Why it was cancelled; `nil` while it was not.
    private var reason: (any Error)?
    /// Ends what the job does now.
    private var ending: (@Sendable () -> Void)?
    /// The job whose closure waits for this one.
    let caller: ConnectionJob?
    /// What the closure waits for; read and written only by ``ConnectionQueue``, under the lock of its circles.
    var awaited: (any Awaitable)?
    let store: StoreIdentity
    /// Whether the connection is not to be used again.
    let spendsConnection: Bool
    private let work: Work
    private let refusal: @Sendable (any Error) -> Void

    /// A job that answers with what `body` gives in a transaction.
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

    /// A job that answers with what `body` gives while its worker has no connection.
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

    /// Whether it runs on a connection.
    var needsConnection: Bool {
        if case .onConnection = work { true } else { false }
    }

    /// Runs the job; the answer is delivered by the caller, who takes the connection back first.
    func run(on connection: Connection?) -> Delivery {
        switch (work, connection) {
        case (.onConnection(let work), let connection?): work(connection, self)
        case (.withoutConnection(let work), _): work(self)
        case (.onConnection, nil): {}
        }
    }

    /// Runs `body` in a read transaction on a connection that is lent for it.
    func read<Output>(
        on access: ConnectionAccess, _ body: @escaping (Connection) throws -> Output
    ) throws -> Output {
        var output: Output?
        try access { output = try StoreTransaction.read.run(on: $0, as: self, body) }
        guard let output else { throw CancellationError() }
        return output
    }

    /// Answers without running.
    func refuse(_ error: any Error) { refusal(error) }

    /// Whether its closure, or one that waits for it, is one of this store.
    func holds(_ store: StoreIdentity) -> Bool { self.store === store || caller?.holds(store) == true }

    // MARK: Cancellation

    var isCancelled: Bool { lock.withLock { reason != nil } }

    /// What a job that was cancelled throws.
    var cancellation: any Error { lock.withLock { reason } ?? CancellationError() }

    /// Ends what it does now; the caller takes a waiting job out of its queue.
    ///
    /// - Parameter reason: What the job throws; the first one counts.
    func cancel(_ reason: any Error = CancellationError()) {
        lock.withLock {
            self.reason = self.reason ?? reason
            ending?()
        }
    }

    /// Runs `body`, which a cancellation ends.
    ///
    /// - Throws: The reason where the job was cancelled before `body` ended, whatever `body` made of that.
    func whileInterruptible<Output>(
        _ connection: Connection, inTransaction: Bool = true, _ body: (Connection) throws -> Output
    ) throws -> Output {
        let interrupter = connection.interrupter
        return try whileCancellable {
            interrupter.interrupt()
        } body: {
            // An interrupt between two statements is lost on the second; this ends it after a thousand steps.
            connection.setProgressHandler(every: 1_000) { [self] in !isCancelled }
            defer { connection.setProgressHandler(every: 0, nil) }
            return try connection.lend(inTransaction: inTransaction, body)
        }
    }

    /// The same of what `ending` ends.
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

/// Lends a connection to a closure, once.
typealias ConnectionAccess = @Sendable ((Connection) throws -> Void) throws -> Void

/// Which store a job belongs to.
package final class StoreIdentity: Sendable {
    /// Who is to be told of its commits.
    let changes = ChangeBroadcaster()
    /// Who is to be told what it does.
    let events: EventLog

    package convenience init() { self.init(EventLog(database: "", tell: nil)) }

    init(_ events: EventLog) {
        self.events = events
    }
}
