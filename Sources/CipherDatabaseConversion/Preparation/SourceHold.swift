internal import CipherErrors
package import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// The source file at rest: it has no log and no journal, and is write-locked until it becomes a ``ReplacedFile``.
///
/// Other connections may read meanwhile, but none can write. The lock belongs to the file descriptor and not to a
/// connection, because it may outlive the run, and a connection would keep the key in memory.
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
    /// This rolls back a hot journal.
    ///
    /// - Parameters:
    ///   - identity: The identity of the file, because another file may have its name by now.
    ///   - ownership: Whether this process was the only one that had the file open.
    ///   - key: The key that has opened the file; `nil` for a plaintext file.
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
        // Nothing else in this process has the file open, so the open file must be this descriptor's.
        guard identity.isOpenHere() else { throw identity.replaced() }
        // Leaving WAL mode requires that no other connection uses the file. This is checked first, because a checkpoint
        // writes to the file before SQLite refuses to leave the mode.
        if wasWriteAheadLog, lock.whileUnused(timeout: busyTimeout, {}) == nil {
            throw StoreError.inUse(paths.database)
        }
        try HotJournal.checkRollback(paths, key, timeout: busyTimeout)
        connection = try ConnectionProfile.settling(Connection.size(paths.database)).with(key, extensions)
            .open(paths.database, busyTimeout: busyTimeout)
        try connection.proveReadable(paths.database, isPlaintext: key == nil)
    }

    /// Brings the file to rest and locks it.
    ///
    /// - Throws: ``StoreError`` with the code `busy` while another connection has the file open in WAL mode or is
    ///   writing.
    package func settle() throws {
        for _ in 0..<10 {
            try leaveWriteAheadLog()
            try connection.execute("BEGIN IMMEDIATE")
            try connection.proveReadable()
            try removeStraySidecars()
            // As soon as a connection has the write lock, SQLite corrects the size in the header of a file last written
            // by an old version. A refused file must not change.
            try connection.execute("ROLLBACK")
            guard lock.reserve(timeout: busyTimeout) else { throw StoreError.inUse(paths.database) }
            if try isAtRest() {
                stateAtRest = try identity.state(start: lock.read(at: 0, count: OriginalFile.State.length))
                return
            }
            // Another process has created a log or journal meanwhile.
            lock.unlock()
        }
        throw StoreError.busy(
            paths.database, "another connection keeps writing to the file", retry: .afterClosing, changed: nil)
    }

    /// Leaves WAL mode, so that SQLite merges the log into the file while it has the file locked exclusively.
    ///
    /// A checkpoint before that would run while other connections use the file, and could lose what one of them commits
    /// meanwhile: ``Checkpointer``.
    private func leaveWriteAheadLog() throws {
        if try connection.value(String.self, "PRAGMA journal_mode") != "wal" {
            // When it changes from PERSIST to DELETE, SQLite removes the obsolete journal that an app in PERSIST or
            // TRUNCATE mode leaves.
            _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
        }
        guard try connection.value(String.self, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw StoreError.inUse(paths.database)
        }
    }

    /// Removes an empty `-wal`, and a `-shm` without a log, which copied folders can contain.
    ///
    /// In rollback mode and under the write lock, no connection can be using them.
    private func removeStraySidecars() throws {
        guard try !isWriteAheadLog() else { return }
        if try FileSystem.size(paths.wal) == 0 { try FileSystem.removeIfPresent(paths.wal) }
        if try !FileSystem.exists(paths.wal) { try FileSystem.removeIfPresent(paths.sharedMemory) }
    }

    /// Returns whether the header states rollback mode and no sidecar exists.
    ///
    /// The result is reliable only while the lock is held.
    private func isAtRest() throws -> Bool {
        // A transaction rereads the header, which may have changed since the last one.
        try connection.execute("BEGIN")
        try connection.proveReadable()
        let isWriteAheadLog = try isWriteAheadLog()
        try connection.execute("COMMIT")
        return try !isWriteAheadLog && !paths.hasSidecar()
    }

    /// Returns whether the header states WAL mode.
    ///
    /// SQLite itself reads the header of an encrypted file, under the lock.
    private func isWriteAheadLog() throws -> Bool {
        guard key != nil else { return try FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog }
        return try connection.value(String.self, "PRAGMA journal_mode") == "wal"
    }

    /// Checks the schema through the connection of this hold.
    func checkSchema(_ preflight: Preflight) throws {
        try preflight.checkSchema(connection)
    }

    /// The file, whose bytes can be read under the lock.
    package var file: DatabaseFile { lock }

    /// Whether the file has changed since it was at rest, because a program that uses another kind of lock has written
    /// to it.
    var isChanged: Bool {
        guard let stateAtRest else { return false }
        return (try? identity.state(start: lock.read(at: 0, count: OriginalFile.State.length)) == stateAtRest) != true
    }

    /// Releases the lock, and restores the journal mode of the file.
    ///
    /// - Returns: Whether the journal mode was restored: another process may be using the file by then.
    package func giveBack() -> Bool {
        end()
        // If another program has put a different file in its place, that file is not changed.
        guard wasWriteAheadLog, identity.hasItsName else { return true }
        return Attempts.restoreWriteAheadLog(paths, key, busyTimeout: busyTimeout) == nil
    }

    /// Locks all other connections out of the file, which is about to lose its name.
    ///
    /// - Parameter check: A closure that throws to stop the waiting.
    /// - Throws: ``StoreError`` with the code `busy` if another connection opened the file meanwhile or is reading it.
    package func becomeOldFile(checking check: () throws -> Void = {}) throws -> ReplacedFile {
        connection.close()
        guard let stateAtRest else { throw StoreError.inUse(paths.database) }
        return try ReplacedFile(
            paths, identity, ownership, reserved: lock, state: stateAtRest, timeout: busyTimeout,
            checking: check)
    }

    /// Releases the lock and leaves the file as it is.
    func end() {
        connection.close()
        lock.close()
    }
}
