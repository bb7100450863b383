package import CipherDatabaseConversion
internal import CipherErrors
package import CipherSQLite

/// Opens the connections of one store, all with the same key and settings.
package struct StoreConnections: Sendable {
    let path: String
    /// The file and its key.
    let file: StoreFile
    let extensions: SQLExtensions
    let columnForms: ColumnForms
    /// How long a statement waits for another process's lock.
    let busyTimeout: Duration
    /// The log to which checkpoints are reported.
    var events: EventLog?
    /// The in-memory database, if the store has no file.
    private var memory: MemoryDatabase?

    package init(
        path: String, fileKey: FileKey?, extensions: SQLExtensions, columnForms: ColumnForms = ColumnForms(),
        busyTimeout: Duration
    ) {
        self.init(
            path: path, file: StoreFile(path, fileKey), extensions: extensions, columnForms: columnForms,
            busyTimeout: busyTimeout)
    }

    private init(
        path: String, file: StoreFile, extensions: SQLExtensions, columnForms: ColumnForms = ColumnForms(),
        busyTimeout: Duration
    ) {
        self.path = path
        self.file = file
        self.extensions = extensions
        self.columnForms = columnForms
        self.busyTimeout = busyTimeout
    }

    /// Creates connections to an in-memory database, of which only one may exist at a time.
    init(_ memory: MemoryDatabase, _ configuration: Configuration) {
        self.init(
            path: ":memory:", fileKey: nil, extensions: configuration.extensions,
            columnForms: configuration.columnForms, busyTimeout: .zero)
        self.memory = memory
    }

    /// Opens the writer's connection, in WAL mode if possible.
    package func writer() throws -> Connection {
        guard memory == nil else { return try open() }
        var connection = try open()
        if try !writesAhead(connection) {
            connection.close()
            try leaveWriteAheadLog()
            connection = try open()
        }
        let impatient = StoreConnections(path: path, file: file, extensions: extensions, busyTimeout: .zero)
        connection.checkpoint { try impatient.open() }
        connection.checkpointer?.didEnd = { [events] in
            switch $0 {
            case .success(let isWhole): events?(.checkpointed(isWhole: isWhole))
            // Another connection holds the write lock.
            case .failure(let error as DatabaseError) where error.isBusy: events?(.checkpointed(isWhole: false))
            case .failure(let error): events?(.checkpointFailed(error))
            }
        }
        return connection
    }

    /// Opens a read-only connection.
    package func reader(_ profile: ConnectionProfile = .storing) throws -> Connection {
        let connection = try open(profile)
        try StoreError.typing(path) {
            try connection.execute("PRAGMA query_only = ON")
            connection.refuseBlankPages()
        }
        return connection
    }

    private func open(_ profile: ConnectionProfile = .storing) throws -> Connection {
        let connection = try connect(profile)
        connection.columnForms = columnForms
        try StoreError.typing(path) {
            try connection.proveReadable()
            // An acknowledged transaction is on the disk, whatever happens to the machine.
            try connection.execute("PRAGMA synchronous = FULL")
            try connection.execute("PRAGMA foreign_keys = ON")
            // SQLite leaves frames of a commit in the log without a checksum if it wrote changed pages to the log twice
            // before the commit, and then undid a statement or a savepoint. After a crash, neither this commit nor any
            // later one would be found. Pages that stay in memory until the commit are written only once.
            try connection.execute("PRAGMA cache_spill = OFF")
            try connection.stopAutomaticCheckpoints()
            try connection.refuseWhatOutlastsLoans()
        }
        return connection
    }

    private func connect(_ profile: ConnectionProfile = .storing) throws -> Connection {
        try StoreError.typing(path) {
            if let memory { return try memory.connect(profile.with(extensions: extensions)) }
            let fileKey = try file.key(busyTimeout: busyTimeout)
            return try profile.with(fileKey, extensions).open(path, busyTimeout: busyTimeout)
        }
    }

    // MARK: Journal mode

    /// Turns on WAL mode, and returns whether the file can be used afterwards.
    ///
    /// WAL mode stays off, which is not an error, while another process uses the file, and if SQLite knows that the
    /// file system does not support WAL mode. If the lack of support becomes apparent only after the attempt, the file
    /// is in WAL mode and cannot be read.
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

    /// Switches back to a rollback journal on a file system without shared memory.
    ///
    /// A connection with exclusive access to the file does not need shared memory.
    private func leaveWriteAheadLog() throws {
        let connection = try connect()
        defer { connection.close() }
        try StoreError.typing(path) {
            _ = try connection.value(String.self, "PRAGMA locking_mode = EXCLUSIVE")
            _ = try connection.value(String.self, "PRAGMA journal_mode = DELETE")
        }
    }
}
