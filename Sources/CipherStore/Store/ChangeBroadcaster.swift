internal import CipherSQLite
internal import CipherSystemFiles

/// Tells the observers of a store what was committed.
final class ChangeBroadcaster: @unchecked Sendable {
    // Read and written only under `lock`.
    private let lock = Lock()
    private var observers: [Observer] = []
    private var dataVersion: Int?
    /// The connection of that number: those of two have nothing to do with each other.
    private weak var looked: Connection?
    private var closing: (any Error)?

    private struct Observer {
        weak var signal: ChangeSignal?
    }

    /// Whether somebody observes.
    var isObserved: Bool { lock.withLock { !observers.isEmpty } }

    /// A new observer, which is told until it is gone.
    ///
    /// - Parameters:
    ///   - region: What it observes.
    ///   - isChanged: Whether it is to look at once.
    func signal(of region: TableAccess, isChanged: Bool) -> ChangeSignal {
        let signal = ChangeSignal(region: region, isChanged: isChanged)
        let closing = lock.withLock { () -> (any Error)? in
            observers.append(Observer(signal: signal))
            return self.closing
        }
        if let closing { signal.end(closing) }
        return signal
    }

    /// Tells of a commit.
    func committed(_ access: TableAccess) {
        guard !access.isEmpty else { return }
        for signal in signals() { signal.committed(access) }
    }

    /// Tells of the commits of others.
    ///
    /// - Parameter connection: The writer: on it the number changes with the commits of other connections alone.
    func look(_ connection: Connection) throws {
        let version = try connection.value(Int.self, "PRAGMA data_version")
        let isOther = lock.withLock { () -> Bool in
            defer { (dataVersion, looked) = (version, connection) }
            // What happened before the first look is not known.
            return dataVersion != version || looked !== connection
        }
        if isOther { committed(.everything) }
    }

    /// Has all observers look again after a time without a connection: nothing is known of the commits of others meanwhile.
    func resume() { committed(.everything) }

    /// Ends all observations, those to come too.
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
