package import CipherSQLite
package import CipherSystemFiles

/// The settings with which the proof opens a file: on its own connection, for reading only.
package struct ProofConnection: Sendable {
    let path: String
    /// The key; `nil` for a plaintext file.
    let key: CipherKey?
    let settings: CipherSettings
    let extensions: SQLExtensions
    /// How long to wait for other connections to the file.
    let busyTimeout: Duration
    /// The file of the copy, which may have no name or another one; `nil` for the original.
    var copy: NewFile?
    /// Connections that were opened ahead of time and see one commit; `nil` if no other connection writes to the file.
    private var pinned: PinnedConnections?

    package init(
        path: String, key: CipherKey?, settings: CipherSettings, extensions: SQLExtensions,
        busyTimeout: Duration = .seconds(5), copy: NewFile? = nil
    ) {
        self.path = path
        self.key = key
        self.settings = settings
        self.extensions = extensions
        self.busyTimeout = busyTimeout
        self.copy = copy
    }

    /// Whether the file is plaintext and no other connection can write to it meanwhile.
    var isAtRestAndPlaintext: Bool { key == nil && pinned == nil }

    /// Opens the file.
    ///
    /// `isCancelled` is called repeatedly while a statement runs.
    ///
    /// - Parameters:
    ///   - mode: The access mode. SQLite omits CHECK constraints from the schema of a file that it may only read.
    ///   - steps: The number of instructions of SQLite's virtual machine between two calls of `isCancelled`.
    func open(
        _ mode: Connection.Mode = .readOnly, askingEvery steps: Int32 = 100_000, isCancelled: @escaping () -> Bool
    ) throws -> Connection {
        let connection = try pinned?.take(mode) ?? open(mode)
        connection.setProgressHandler(every: steps) { !isCancelled() }
        return connection
    }

    private func open(_ mode: Connection.Mode) throws -> Connection {
        var profile = ConnectionProfile.proving(try copy?.size() ?? Connection.size(path))
            .with(key: key, format: settings, extensions: extensions)
        profile.mode = mode
        let connection = try profile.open(path, busyTimeout: busyTimeout, through: copy?.layer())
        try connection.proveReadable()
        return connection
    }

    /// Returns these settings with all connections that a proof needs already open, each in a transaction.
    ///
    /// No connection may commit to the file until this returns. Later commits are not seen.
    func pinning() throws -> ProofConnection {
        func pin(_ mode: Connection.Mode) throws -> Connection {
            let connection = try open(mode)
            try connection.pinSnapshot()
            return connection
        }
        var pinning = self
        pinning.pinned = PinnedConnections(
            // Two connections for the workers, one for the engine's own check of the original, and one for the search
            // for rows that the copy lacks.
            readers: [try pin(.readOnly), try pin(.readOnly), try pin(.readOnly), try pin(.readOnly)],
            // One connection for the check of values that the definitions of tables forbid.
            others: [try pin(.readWrite)])
        return pinning
    }

    /// Closes the connections of ``pinning()`` that the proof did not need.
    func end() { pinned?.end() }
}

/// Connections that each see the same commit of a file.
// Unchecked but safe across threads: the connections are handed out under `lock`, each once, and used only by the
// caller that took them.
private final class PinnedConnections: @unchecked Sendable {
    private let lock = Lock()
    private var readers: [Connection]
    private var others: [Connection]

    init(readers: [Connection], others: [Connection]) {
        self.readers = readers
        self.others = others
    }

    func take(_ mode: Connection.Mode) -> Connection {
        let connection = lock.withLock { mode == .readOnly ? readers.popLast() : others.popLast() }
        guard let connection else {
            preconditionFailure("a proof opened more connections to the original than it had declared")
        }
        return connection
    }

    func end() {
        lock.withLock {
            for connection in readers + others { connection.close() }
            readers = []
            others = []
        }
    }
}
