internal import CipherSQLite
internal import Dispatch

/// One connection with a queue of its own, on which everything happens that touches it: opened when a job needs it, and
/// again after it was closed.
///
/// A serial queue gets a thread of its own when it has work: nothing here blocks Swift's cooperative threads.
final class ConnectionWorker: @unchecked Sendable {
    /// The job of the queue that a thread runs on.
    private static let current = DispatchSpecificKey<CurrentJob>()

    // `connection` is touched only on `queue`; the rest never changes.
    private var connection: Connection?
    private let current = CurrentJob()
    private let queue: DispatchQueue
    private let open: @Sendable () throws -> Connection

    /// A worker that opens its connection when it first has a job.
    init(_ name: String, open: @escaping @Sendable () throws -> Connection) {
        self.open = open
        queue = DispatchQueue(label: "CipherStore \(name)", qos: .userInitiated)
        queue.setSpecific(key: Self.current, value: current)
    }

    /// The job whose closure the calling thread runs.
    static var currentJob: ConnectionJob? { DispatchQueue.getSpecific(key: current)?.job }

    /// Runs a job, calls `finished`, and delivers the answer then.
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
            // A connection that could not roll back does so by closing; the next job opens another.
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

/// What a queue runs.
private final class CurrentJob: @unchecked Sendable {
    // Touched only on the queue.
    var job: ConnectionJob?
}
