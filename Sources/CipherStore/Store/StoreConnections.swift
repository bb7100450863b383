package import CipherDatabaseConversion
internal import CipherErrors
package import CipherSQLite

/// Opens the connections of one store, all with the same key and settings.
package struct StoreConnections: Sendable {
    let path: String
    /// The key, derived once; `nil` for a plaintext file.
    let fileKey: FileKey?
    let collations: [Collation]
    let columnForms: ColumnForms
    /// How long a statement waits for a lock of another process.
    let busyTimeout: Duration

    package init(
        path: String, fileKey: FileKey?, collations: [Collation], columnForms: ColumnForms = ColumnForms(),
        busyTimeout: Duration
    ) {
        self.path = path
        self.fileKey = fileKey
        self.collations = collations
        self.columnForms = columnForms
        self.busyTimeout = busyTimeout
    }

    /// The connection that writes, in WAL mode where that is possible.
    package func writer() throws -> Connection {
        var connection = try open()
        if try !writesAhead(connection) {
            connection.close()
            try leaveWriteAheadLog()
            connection = try open()
        }
        let impatient = StoreConnections(path: path, fileKey: fileKey, collations: collations, busyTimeout: .zero)
        connection.checkpoint { try impatient.open() }
        return connection
    }

    /// A connection that only reads.
    package func reader() throws -> Connection {
        let connection = try open()
        try StoreError.typing(path) {
            try connection.execute("PRAGMA query_only = ON")
        }
        return connection
    }

    private func open() throws -> Connection {
        let connection = try connect()
        connection.columnForms = columnForms
        try StoreError.typing(path) {
            try connection.proveReadable()
            // An acknowledged transaction is on the disk, whatever happens to the machine.
            try connection.execute("PRAGMA synchronous = FULL")
            // Only Apple's systems know a sync that empties the disk's own cache; elsewhere this does nothing.
            try connection.execute("PRAGMA fullfsync = ON")
            try connection.execute("PRAGMA checkpoint_fullfsync = ON")
            try connection.execute("PRAGMA foreign_keys = ON")
            try connection.stopAutomaticCheckpoints()
            try connection.refuseWhatOutlastsLoans()
        }
        return connection
    }

    private func connect() throws -> Connection {
        try StoreError.typing(path) {
            try ConnectionProfile.storing.with(fileKey, collations).open(path, busyTimeout: busyTimeout)
        }
    }

    // MARK: Journal mode

    /// Turns WAL mode on, and tells whether the file can be used afterwards.
    ///
    /// It stays off, which is no failure, while another process uses the file, and where SQLite knows that the file
    /// system cannot do it. Where only the attempt shows it, the file is in WAL mode and cannot be read.
    private func writesAhead(_ connection: Connection) throws -> Bool {
        do {
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
        } catch let error as DatabaseError where error.isBusy {
            return true
        } catch let error as DatabaseError where error.isCannotOpen || error.isInputOutput {
            return false
        }
        do {
            try connection.proveReadable()
            return true
        } catch let error as DatabaseError where error.isCannotOpen || error.isInputOutput {
            return false
        } catch let error as DatabaseError {
            throw StoreError(error, path: path, during: .use)
        }
    }

    /// Goes back to a rollback journal on a file system without shared memory, which a connection that has the file
    /// alone can do without.
    private func leaveWriteAheadLog() throws {
        let connection = try connect()
        defer { connection.close() }
        try StoreError.typing(path) {
            _ = try connection.value(String.self, "PRAGMA locking_mode = EXCLUSIVE")
            _ = try connection.value(String.self, "PRAGMA journal_mode = DELETE")
        }
    }
}
