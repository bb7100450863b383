import CipherSQLite
internal import Dispatch

/// One connection with a queue of its own, on which everything happens that touches it.
///
/// A serial queue gets a thread of its own when it has work: nothing here blocks Swift's cooperative threads.
final class ConnectionWorker: @unchecked Sendable {
    /// What the queue that a thread runs on holds.
    private static let held = DispatchSpecificKey<HeldStores>()

    // `connection` is touched only on `queue`; the rest never changes.
    private var connection: Connection?
    private let held: HeldStores
    private let queue: DispatchQueue
    private let open: @Sendable () throws -> Connection

    /// A worker that opens its connection when it first has a job.
    init(_ name: String, of store: StoreIdentity, open: @escaping @Sendable () throws -> Connection) {
        self.open = open
        queue = DispatchQueue(label: "CipherStore \(name)", qos: .userInitiated)
        held = HeldStores(store)
        queue.setSpecific(key: Self.held, value: held)
    }

    /// The stores of whose closures one waits for what the calling thread runs, and the store whose closure that is.
    static var heldStores: Set<ObjectIdentifier> { DispatchQueue.getSpecific(key: held)?.all ?? [] }

    /// Whether the calling thread runs a closure of this store, or one for which such a closure waits.
    static func isRunning(for store: StoreIdentity) -> Bool { heldStores.contains(ObjectIdentifier(store)) }

    /// Runs a job, calls `finished`, and delivers the answer then.
    func run(_ job: ConnectionJob, finished: @escaping @Sendable (ConnectionWorker) -> Void) {
        queue.async { [self] in
            held.callers = job.heldStores
            let deliver = perform(job)
            finished(self)
            deliver()
        }
    }

    private func perform(_ job: ConnectionJob) -> ConnectionJob.Delivery {
        do {
            let connection = try self.connection ?? open()
            self.connection = connection
            connection.claim()
            defer { connection.takeBack() }
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

/// The stores that wait while a queue runs a job.
private final class HeldStores: @unchecked Sendable {
    // `callers` is touched only on the queue; the rest never changes.
    var callers: Set<ObjectIdentifier> = []
    private let own: ObjectIdentifier

    init(_ own: StoreIdentity) {
        self.own = ObjectIdentifier(own)
    }

    var all: Set<ObjectIdentifier> { callers.union([own]) }
}
