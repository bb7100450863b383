internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Keeps the log of a database as it is: no commit begins it anew, and no close removes it.
///
/// It is a read transaction, begun before any other connection of this process is opened.
// Unchecked, and safe between threads: the connection is taken once, under the lock.
package final class LogKeeper: @unchecked Sendable {
    private let lock = Lock()
    private var connection: Connection?

    init(_ path: String, _ options: ConversionOptions) throws {
        var profile = ConnectionProfile.inspecting(try Connection.size(path)).with(extensions: options.extensions)
        profile.checkpointsByItself = false
        let connection = try profile.open(path, busyTimeout: options.busyTimeout)
        do {
            try connection.pinSnapshot()
        } catch {
            connection.close()
            throw error
        }
        self.connection = connection
    }

    /// Lets go of the log; a second call does nothing.
    package func end() {
        let connection = lock.withLock { () -> Connection? in
            defer { self.connection = nil }
            return self.connection
        }
        connection?.close()
    }

    deinit { end() }
}
