import CipherSQLite
internal import Dispatch

/// One connection with a queue of its own, on which everything happens that touches it.
///
/// A serial queue gets a thread of its own when it has work: nothing here blocks Swift's cooperative threads.
final class ConnectionWorker: @unchecked Sendable {
    // `connection` is touched only on `queue`; the rest never changes.
    /// The store whose queue a thread runs on.
    private static let store = DispatchSpecificKey<ObjectIdentifier>()

    private var connection: Connection?
    private let queue: DispatchQueue
    private let open: @Sendable () throws -> Connection

    /// A worker that opens its connection when it first has a job.
    init(_ name: String, of store: StoreIdentity, open: @escaping @Sendable () throws -> Connection) {
        self.open = open
        queue = DispatchQueue(label: "CipherStore \(name)", qos: .userInitiated)
        queue.setSpecific(key: Self.store, value: ObjectIdentifier(store))
    }

    /// Whether the calling thread runs a closure of this store.
    static func isRunning(for store: StoreIdentity) -> Bool {
        DispatchQueue.getSpecific(key: Self.store) == ObjectIdentifier(store)
    }

    /// Runs a job, calls `finished`, and delivers the answer then.
    func run(_ job: ConnectionJob, finished: @escaping @Sendable (ConnectionWorker) -> Void) {
        queue.async { [self] in
            let deliver = perform(job)
            finished(self)
            deliver()
        }
    }

    private func perform(_ job: ConnectionJob) -> ConnectionJob.Delivery {
        do {
            let connection = try self.connection ?? open()
            self.connection = connection
            let deliver = job.run(on: connection)
            // A connection that could not roll back does so by closing; the next job opens another.
            if connection.isInTransaction { closeConnection() }
            return deliver
        } catch {
            return { job.refuse(error) }
        }
    }

    /// Closes the connection and calls `closed`.
    func close(_ closed: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            closeConnection()
            closed()
        }
    }

    private func closeConnection() {
        connection?.close()
        connection = nil
    }
}

/// Which store a queue belongs to.
final class StoreIdentity: Sendable {}
