package import CipherSQLite
internal import CipherSystemFiles

/// One read or write on its way: it waits, runs on one connection, and is answered once.
///
/// A cancellation reaches the connection only while this job's own closure runs on it: never `BEGIN` and `COMMIT`, and
/// never the next job.
package final class ConnectionJob: @unchecked Sendable {
    /// Hands the outcome to whoever waits for it.
    typealias Delivery = @Sendable () -> Void

    // `cancelled` and `interrupter` are read and written only under `lock`; the rest but `awaited` never changes.
    private let lock = Lock()
    private var cancelled = false
    private var interrupter: Interrupter?
    /// The job whose closure waits for this one.
    let caller: ConnectionJob?
    /// The queue in which the closure waits for another job; read and written only by ``ConnectionQueue``, under its lock.
    var awaited: ConnectionQueue?
    let store: StoreIdentity
    private let work: @Sendable (Connection, ConnectionJob) -> Delivery
    private let refusal: @Sendable (any Error) -> Void

    /// A job that answers with what `body` gives in a transaction.
    package init<Output: Sendable>(
        _ transaction: StoreTransaction, of store: StoreIdentity, calledBy caller: ConnectionJob? = nil,
        _ body: @escaping @Sendable (Connection) throws -> Output,
        completion: @escaping @Sendable (Result<Output, any Error>) -> Void
    ) {
        self.store = store
        self.caller = caller
        work = { connection, job in
            let outcome = Result { try transaction.run(on: connection, as: job, body) }
            return { completion(outcome) }
        }
        refusal = { completion(.failure($0)) }
    }

    /// Runs the job; the answer is delivered by the caller, who takes the connection back first.
    func run(on connection: Connection) -> Delivery { work(connection, self) }

    /// Answers without running.
    func refuse(_ error: any Error) { refusal(error) }

    /// Whether its closure, or one that waits for it, is one of this store.
    func holds(_ store: StoreIdentity) -> Bool { self.store === store || caller?.holds(store) == true }

    // MARK: Cancellation

    var isCancelled: Bool { lock.withLock { cancelled } }

    /// Ends the closure's statement if it runs; the caller takes a waiting job out of its queue.
    func cancel() {
        lock.withLock {
            cancelled = true
            interrupter?.interrupt()
        }
    }

    /// Runs `body`, which a cancellation ends.
    ///
    /// - Throws: `CancellationError` where the job was cancelled before `body` ended, whatever `body` made of that.
    func whileInterruptible<Output>(
        _ connection: Connection, _ body: (Connection) throws -> Output
    ) throws -> Output {
        guard begin(connection.interrupter) else { throw CancellationError() }
        // An interrupt between two statements is lost on the second; this ends it after a thousand steps.
        connection.setProgressHandler(every: 1_000) { [self] in !isCancelled }
        let outcome = Result { try connection.lend(body) }
        connection.setProgressHandler(every: 0, nil)
        guard end() else { throw CancellationError() }
        return try outcome.get()
    }

    private func begin(_ interrupter: Interrupter) -> Bool {
        lock.withLock {
            guard !cancelled else { return false }
            self.interrupter = interrupter
            return true
        }
    }

    private func end() -> Bool {
        lock.withLock {
            interrupter = nil
            return !cancelled
        }
    }
}

/// Which store a job belongs to.
package final class StoreIdentity: Sendable {
    /// Who is to be told of its commits.
    let changes = ChangeBroadcaster()

    package init() {}
}
