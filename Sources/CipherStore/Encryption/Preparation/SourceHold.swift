import CipherSQLite

/// The file as it is, at rest: no log, no journal, and a write lock on it until the swap is done.
///
/// Others may read meanwhile, nobody can write.
final class SourceHold {
    private let connection: Connection
    private let paths: DatabasePaths
    private let key: FileKey?
    private let busyTimeout: Int32
    let wasWriteAheadLog: Bool

    /// Opens the file.
    ///
    /// A hot journal is rolled back.
    ///
    /// - Parameters:
    ///   - key: The key of the file, which has been tried; `nil` for a plaintext one.
    ///   - wasWriteAheadLog: Whether the app keeps the file in WAL mode.
    init(
        _ paths: DatabasePaths, key: FileKey?, wasWriteAheadLog: Bool, busyTimeout: Int32, collations: [Collation]
    ) throws {
        self.paths = paths
        self.key = key
        self.busyTimeout = busyTimeout
        self.wasWriteAheadLog = wasWriteAheadLog
        if wasWriteAheadLog { try Self.waitUntilUnused(paths, timeout: busyTimeout) }
        connection = try Connection(path: paths.database, mode: .readWrite, busyTimeout: busyTimeout)
        if let key { try connection.setKey(key.key, settings: key.settings) }
        connection.allowDoubleQuotedStrings()
        try connection.distrust(paths.database)
        connection.beDefensive()
        for collation in collations { try connection.register(collation) }
        try connection.proveReadable(paths.database, isPlaintext: key == nil)
    }

    /// Leaving WAL mode needs the file alone.
    ///
    /// Asked for before anything else, for a checkpoint writes the file before it is refused.
    private static func waitUntilUnused(_ paths: DatabasePaths, timeout: Int32) throws {
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        guard file.whileUnused(timeout: timeout, {}) != nil else { throw busy(paths) }
    }

    /// Brings the file to rest and locks it.
    ///
    /// - Throws: ``StoreError`` with `busy` while another process has it open in WAL mode or is writing.
    func settle() throws {
        for _ in 0..<10 {
            try leaveWriteAheadLog()
            try connection.execute("BEGIN IMMEDIATE")
            try connection.proveReadable()
            try removeStraySidecars()
            if try isAtRest() { return }
            // Another process came between with a log or journal of its own. Or the journal is ours: SQLite mends the
            // size in the header of a file that an old version wrote last, as soon as it has the write lock.
            try connection.execute("COMMIT")
        }
        throw StoreError(
            .busy, path: paths.database, "other processes keep writing the file", advice: "close them and try again")
    }

    private func leaveWriteAheadLog() throws {
        if try connection.value(String.self, "PRAGMA journal_mode") == "wal" {
            // A busy checkpoint is told in a row, not as an error.
            guard try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)") == 0 else { throw Self.busy(paths) }
        } else {
            // From PERSIST to DELETE, SQLite removes the spent journal that an app in PERSIST or TRUNCATE mode leaves.
            _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
        }
        guard try connection.value(String.self, "PRAGMA journal_mode = DELETE") == "delete" else {
            throw Self.busy(paths)
        }
    }

    /// Removes an empty `-wal`, and a `-shm` whose log is gone, as copied folders hold them.
    ///
    /// In rollback mode and under the write lock nobody can be using them.
    private func removeStraySidecars() throws {
        guard try !isWriteAheadLog() else { return }
        if try FileSystem.size(paths.wal) == 0 { try FileSystem.removeIfPresent(paths.wal) }
        if try !FileSystem.exists(paths.wal) { try FileSystem.removeIfPresent(paths.sharedMemory) }
    }

    /// Whether the header says rollback mode and no sidecar exists.
    ///
    /// Only sure while the lock is held.
    func isAtRest() throws -> Bool {
        try !isWriteAheadLog()
            && !FileSystem.exists(paths.wal) && !FileSystem.exists(paths.journal)
            && !FileSystem.exists(paths.sharedMemory)
    }

    /// What the header says, which of an encrypted file SQLite itself reads under the lock.
    private func isWriteAheadLog() throws -> Bool {
        guard key != nil else { return try FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog }
        return try connection.value(String.self, "PRAGMA journal_mode") == "wal"
    }

    private static func busy(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .busy, path: paths.database, "another process has the database open",
            advice: "close it and try again; nothing was changed")
    }

    /// Lends the connection that holds the lock, for questions to the schema.
    func checkSchema(_ preflight: Preflight) throws {
        try preflight.checkSchema(connection)
    }

    /// The file's bytes, under the lock.
    func file() throws -> DatabaseFile {
        try DatabaseFile(of: connection)
    }

    /// Ends the lock, and gives the file its journal mode back.
    ///
    /// - Returns: Whether that could be done: another process may use the file by then.
    func giveBack() -> Bool {
        do {
            defer { connection.close() }
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            guard wasWriteAheadLog else { return true }
        } catch {
            return false
        }
        return Attempts.restoreWriteAheadLog(paths, key, busyTimeout: busyTimeout) == nil
    }

    /// Overwrites page 1 of the file that has lost its name, and ends the lock.
    ///
    /// A connection of another process that still has the old file open, idle and so unnoticed, then fails instead of
    /// writing into a file that is gone.
    func spoil() throws {
        defer { connection.close() }
        let file = try file()
        try file.write([UInt8](repeating: 0, count: 512), at: 0)
        try file.sync()
        try connection.execute("ROLLBACK")
    }

    /// Ends the lock and leaves the old file as it is.
    func release() throws {
        defer { connection.close() }
        try connection.execute("ROLLBACK")
    }
}
