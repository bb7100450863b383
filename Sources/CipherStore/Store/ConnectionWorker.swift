internal import CipherSQLite
internal import Dispatch

/// A connection with its own dispatch queue, on which everything that touches it runs.
///
/// The connection is opened when a job needs it, and reopened after it was closed.
///
/// A serial queue gets its own thread when it has work, so nothing here blocks Swift's cooperative threads.
final class ConnectionWorker: @unchecked Sendable {
    /// The job of the queue on which a thread runs.
    private static let current = DispatchSpecificKey<CurrentJob>()

    // `connection` is touched only on `queue`; the rest never changes.
    private var connection: Connection?
    private let current = CurrentJob()
    private let queue: DispatchQueue
    private let open: @Sendable () throws -> Connection

    /// Creates a worker that opens its connection for its first job.
    init(_ name: String, open: @escaping @Sendable () throws -> Connection) {
        self.open = open
        queue = DispatchQueue(label: "CipherStore \(name)", qos: .userInitiated)
        queue.setSpecific(key: Self.current, value: current)
    }

    /// The job whose closure the calling thread runs.
    static var currentJob: ConnectionJob? { DispatchQueue.getSpecific(key: current)?.job }

    /// Runs a job, calls `finished`, and then delivers the result.
    func run(_ job: ConnectionJob, finished: @escaping @Sendable (ConnectionWorker) -> Void) {
        queue.async { [self] in
            current.job = job
            let deliver = perform(job)
            current.job = nil
            finished(self)
            deliver()
        }
    }

    private func perform(_ job: ConnectionJob) -> ConnectionJob.Delivery {
        guard job.needsConnection else {
            closeConnection()
            return job.run(on: nil)
        }
        do {
            let connection = try self.connection ?? open()
            self.connection = connection
            connection.claim()
            defer { connection.takeBack() }
            let deliver = job.run(on: connection)
            // If a rollback failed, closing the connection rolls back; the next job opens another connection.
            if connection.isInTransaction || job.spendsConnection { closeConnection() }
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
        connection?.end()
        connection = nil
    }
}

/// The job that a queue runs.
private final class CurrentJob: @unchecked Sendable {
    // Accessed only on the queue.
    var job: ConnectionJob?
}
