package import CipherSQLite
package import CipherSystemFiles

/// How the proof opens a file: on a connection of its own, for reading only.
package struct ProofConnection: Sendable {
    let path: String
    /// `nil` for a plaintext file.
    let key: CipherKey?
    let settings: CipherSettings
    let collations: [Collation]
    /// How long to wait for other connections to the file.
    let busyTimeout: Duration
    /// The file, where it is the copy: its name need not lead to it.
    var copy: NewFile?

    package init(
        path: String, key: CipherKey?, settings: CipherSettings, collations: [Collation],
        busyTimeout: Duration = .seconds(5), copy: NewFile? = nil
    ) {
        self.path = path
        self.key = key
        self.settings = settings
        self.collations = collations
        self.busyTimeout = busyTimeout
        self.copy = copy
    }

    /// Opens the file.
    ///
    /// `isCancelled` is asked now and then while a statement runs.
    ///
    /// - Parameters:
    ///   - mode: SQLite leaves CHECK constraints out of the schema of a file that it may only read.
    ///   - steps: After how many instructions of SQLite's virtual machine it is asked again.
    func open(
        _ mode: Connection.Mode = .readOnly, askingEvery steps: Int32 = 100_000, isCancelled: @escaping () -> Bool
    ) throws -> Connection {
        var profile = ConnectionProfile.proving(try copy?.size() ?? Connection.size(path))
            .with(key: key, format: settings, collations: collations)
        profile.mode = mode
        let connection = try profile.open(path, busyTimeout: busyTimeout, through: copy?.layer())
        try connection.proveReadable()
        connection.setProgressHandler(every: steps) { !isCancelled() }
        return connection
    }
}
