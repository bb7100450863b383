internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Keeps the log of a database as it is: no commit restarts it, and no close removes it.
///
/// It holds a read transaction that began before this process opened any other connection.
// Unchecked but safe across threads: the connection is taken once, under the lock.
package final class LogKeeper: @unchecked Sendable {
    private let lock = Lock()
    private var connection: Connection?

    init(_ path: String, _ options: ConversionOptions) throws {
        let profile = ConnectionProfile.following(try Connection.size(path)).with(extensions: options.extensions)
        let connection = try profile.open(path, busyTimeout: options.busyTimeout)
        do {
            try connection.pinSnapshot()
        } catch {
            connection.close()
            throw error
        }
        self.connection = connection
    }

    /// Releases the log.
    ///
    /// A second call does nothing.
    package func end() {
        let connection = lock.withLock { () -> Connection? in
            defer { self.connection = nil }
            return self.connection
        }
        connection?.close()
    }

    deinit { end() }
}
