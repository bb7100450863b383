internal import CipherErrors
package import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// The file as it is, at rest: no log, no journal, and a write lock on it until it becomes an ``ReplacedFile``.
///
/// Others may read meanwhile, no one can write. The lock is the file's and no connection's: it may outlive the run, and
/// a connection would keep the key with it.
package final class SourceHold {
    private let connection: Connection
    private let lock: DatabaseFile
    private let paths: DatabasePaths
    private let identity: OriginalFile
    private let ownership: SoleOwnership
    private var stateAtRest: OriginalFile.State?
    private let key: FileKey?
    private let busyTimeout: Duration
    let wasWriteAheadLog: Bool

    /// Opens the file.
    ///
    /// A hot journal is rolled back.
    ///
    /// - Parameters:
    ///   - identity: The file, and not what may have its name by now.
    ///   - ownership: Whether no one else had it open.
    ///   - key: The key of the file, which has been tried; `nil` for a plaintext one.
    ///   - wasWriteAheadLog: Whether the app keeps the file in WAL mode.
    package init(
        _ paths: DatabasePaths, _ identity: OriginalFile, _ ownership: SoleOwnership, key: FileKey?,
        wasWriteAheadLog: Bool, busyTimeout: Duration, extensions: SQLExtensions
    ) throws {
        self.paths = paths
        self.identity = identity
        self.ownership = ownership
        self.key = key
        self.busyTimeout = busyTimeout
        self.wasWriteAheadLog = wasWriteAheadLog
        lock = try DatabaseFile(path: paths.database, access: .readWrite)
        // Nobody else here has the file open, so it is this descriptor's.
        guard identity.isOpenHere() else { throw identity.replaced() }
        // Leaving WAL mode needs the file alone. Asked for before anything else, for a checkpoint writes the file before it
        // is refused.
        if wasWriteAheadLog, lock.whileUnused(timeout: busyTimeout, {}) == nil { throw Self.busy(paths) }
        connection = try ConnectionProfile.settling(Connection.size(paths.database)).with(key, extensions)
            .open(paths.database, busyTimeout: busyTimeout)
        try connection.proveReadable(paths.database, isPlaintext: key == nil)
    }

    /// Brings the file to rest and locks it.
    ///
    /// - Throws: ``StoreError`` with `busy` while another connection has it open in WAL mode or is writing.
    package func settle() throws {
        for _ in 0..<10 {
            try leaveWriteAheadLog()
            try connection.execute("BEGIN IMMEDIATE")
            try connection.proveReadable()
            try removeStraySidecars()
            // SQLite mends the size in the header of a file that an old version wrote last, as soon as a connection has
            // the write lock.
            try connection.execute("COMMIT")
            guard lock.reserve(timeout: busyTimeout) else { throw Self.busy(paths) }
            if try isAtRest() {
                stateAtRest = try identity.state(start: lock.read(at: 0, count: OriginalFile.State.length))
                return
            }
            // Another process came between with a log or journal of its own.
            lock.unlock()
        }
        throw StoreError.busy(
            paths.database, "another connection keeps writing the file", retry: .afterClosing, changed: nil)
    }

    /// Leaves WAL mode, by which SQLite brings the log into the file while it has the file locked against everybody.
    ///
    /// A checkpoint beforehand would run beside others, and could lose what one of them commits meanwhile:
    /// ``Checkpointer``.
    private func leaveWriteAheadLog() throws {
        if try connection.value(String.self, "PRAGMA journal_mode") != "wal" {
            // From PERSIST to DELETE, SQLite removes the spent journal that an app in PERSIST or TRUNCATE mode leaves.
            _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
        }
        guard try connection.value(String.self, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw Self.busy(paths)
        }
    }

    /// Removes an empty `-wal`, and a `-shm` whose log is gone, as copied folders hold them.
    ///
    /// In rollback mode and under the write lock no one can be using them.
    private func removeStraySidecars() throws {
        guard try !isWriteAheadLog() else { return }
        if try FileSystem.size(paths.wal) == 0 { try FileSystem.removeIfPresent(paths.wal) }
        if try !FileSystem.exists(paths.wal) { try FileSystem.removeIfPresent(paths.sharedMemory) }
    }

    /// Whether the header says rollback mode and no sidecar exists.
    ///
    /// Only sure while the lock is held.
    private func isAtRest() throws -> Bool {
        // A transaction reads the header again, which may have changed since the last one.
        try connection.execute("BEGIN")
        try connection.proveReadable()
        let isWriteAheadLog = try isWriteAheadLog()
        try connection.execute("COMMIT")
        return try !isWriteAheadLog && !paths.hasSidecar()
    }

    /// What the header says, which of an encrypted file SQLite itself reads under the lock.
    private func isWriteAheadLog() throws -> Bool {
        guard key != nil else { return try FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog }
        return try connection.value(String.self, "PRAGMA journal_mode") == "wal"
    }

    private static func busy(_ paths: DatabasePaths) -> StoreError {
        .busy(
            paths.database, "another connection, of this process or another, uses the database", retry: .afterClosing)
    }

    /// Lends a connection, for questions to the schema.
    func checkSchema(_ preflight: Preflight) throws {
        try preflight.checkSchema(connection)
    }

    /// The file's bytes, under the lock.
    package var file: DatabaseFile { lock }

    /// Whether the file is no longer what it was at rest: somebody with locks of another kind has written it.
    var isChanged: Bool {
        guard let stateAtRest else { return false }
        return (try? identity.state(start: lock.read(at: 0, count: OriginalFile.State.length)) == stateAtRest) != true
    }

    /// Ends the lock, and gives the file its journal mode back.
    ///
    /// - Returns: Whether that could be done: another process may use the file by then.
    package func giveBack() -> Bool {
        end()
        // What another program has put in its place is not ours to change.
        guard wasWriteAheadLog, identity.hasItsName else { return true }
        return Attempts.restoreWriteAheadLog(paths, key, busyTimeout: busyTimeout) == nil
    }

    /// Locks everybody out of the file, which is about to lose its name.
    ///
    /// - Parameter check: Ends the waiting by throwing.
    /// - Throws: ``StoreError`` with `busy` if somebody opened it meanwhile, or reads it.
    package func becomeOldFile(checking check: () throws -> Void = {}) throws -> ReplacedFile {
        connection.close()
        guard let stateAtRest else { throw Self.busy(paths) }
        return try ReplacedFile(
            paths, identity, ownership, reserved: lock, state: stateAtRest, timeout: busyTimeout,
            checking: check)
    }

    /// Ends the lock and leaves the file as it is.
    func end() {
        connection.close()
        lock.close()
    }
}
