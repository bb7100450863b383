internal import CipherSQLite
internal import CipherSystemFiles

/// Notifies a store's observers of commits.
final class ChangeBroadcaster: @unchecked Sendable {
    // Read and written only under `lock`.
    private let lock = Lock()
    private var observers: [Observer] = []
    private var dataVersion: Int?
    /// The connection on which `dataVersion` was read: the numbers of two connections are unrelated.
    private weak var looked: Connection?
    private var closing: (any Error)?

    private struct Observer {
        weak var signal: ChangeSignal?
    }

    /// Whether there are observers.
    var isObserved: Bool { lock.withLock { !observers.isEmpty } }

    /// Adds an observer, which is notified until it is deallocated.
    ///
    /// - Parameters:
    ///   - region: The observed tables and columns.
    ///   - isChanged: Whether the observer should read at once.
    func signal(of region: TableAccess, isChanged: Bool) -> ChangeSignal {
        let signal = ChangeSignal(region: region, isChanged: isChanged)
        let closing = lock.withLock { () -> (any Error)? in
            observers.append(Observer(signal: signal))
            return self.closing
        }
        if let closing { signal.end(closing) }
        return signal
    }

    /// Notifies observers of a commit.
    func committed(_ access: TableAccess) {
        guard !access.isEmpty else { return }
        for signal in signals() { signal.committed(access) }
    }

    /// Notifies observers if other connections have committed.
    ///
    /// - Parameter connection: The writer's connection, on which the number changes only with other connections'
    ///   commits.
    func look(_ connection: Connection) throws {
        let version = try connection.value(Int.self, "PRAGMA data_version")
        let isOther = lock.withLock { () -> Bool in
            defer { (dataVersion, looked) = (version, connection) }
            // Nothing is known about commits before the first check.
            return dataVersion != version || looked !== connection
        }
        if isOther { committed(.everything) }
    }

    /// Makes all observers read again after a period without a connection, because other connections' commits went
    /// unnoticed meanwhile.
    func resume() { committed(.everything) }

    /// Ends all present and future observations.
    func close(_ error: any Error) {
        lock.withLock { closing = error }
        for signal in signals() { signal.end(error) }
    }

    private func signals() -> [ChangeSignal] {
        lock.withLock {
            observers.removeAll { $0.signal == nil }
            return observers.compactMap(\.signal)
        }
    }
}
