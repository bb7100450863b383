internal import CipherErrors
internal import CipherPageSealing
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Reads a database without leaving files beside it.
package enum ReadOnlyAccess {
    /// Passes `body` a read-only connection.
    ///
    /// A read-only connection to a WAL database creates a `-shm` (and an empty `-wal`) if there was none. These files
    /// are removed again, under the lock that SQLite itself takes for this, unless another connection uses the file by
    /// then. That lock cannot be taken on a file that cannot be written. If such a file has no log, only the file
    /// itself is read. No lock then prevents other connections from writing, so the file is checked for changes
    /// afterwards.
    ///
    /// Source: SQLite, "Write-Ahead Logging", section 5, "Read-Only Databases".
    ///
    /// - Parameter isAlone: Whether this process opens no other connection to the file meanwhile. In that case, the
    ///   index of a log that a killed writer left is only read; otherwise SQLite rebuilds it.
    /// - Throws: Any error thrown by `body`, and ``StoreError`` with the code `busy` if another program wrote to the
    ///   file while it was read without a lock.
    package static func withConnection<Result>(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ extensions: SQLExtensions, busyTimeout: Duration,
        isAlone: Bool, _ body: (Connection) throws -> Result
    ) throws -> Result {
        let hadLog = try FileSystem.exists(paths.wal)
        let hadSharedMemory = try FileSystem.exists(paths.sharedMemory)
        if try !hadSharedMemory && readsAlone(paths, fileKey) {
            return try withFileAlone(paths, fileKey, extensions, body)
        }
        let result: Swift.Result<Result, any Error>
        do {
            // If a log consists only of its header, SQLite waits for ten seconds and fails if it may only read the index.
            let leavesIndex =
                try isAlone && hadLog && FileSystem.size(paths.wal) != Int64(LogHeader.length)
                && hadSharedMemory && Engine.current.readsLogWithoutIndex
            let connection = try open(paths, fileKey, extensions, busyTimeout, leavesIndex: leavesIndex)
            defer { connection.close() }
            result = .success(try body(connection))
        } catch {
            result = .failure(error)
        }
        try removeOurs(paths, hadLog: hadLog, hadSharedMemory: hadSharedMemory)
        return try result.get()
    }

    /// Opens a connection.
    ///
    /// Tries again if a log or an index that SQLite found was removed before SQLite opened it: the last connection of
    /// another process removes both as it closes.
    private static func open(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ extensions: SQLExtensions, _ busyTimeout: Duration,
        leavesIndex: Bool
    ) throws -> Connection {
        var leavesIndex = leavesIndex
        for _ in 1..<FileSystem.looks {
            do {
                return try connect(paths, fileKey, extensions, busyTimeout, leavesIndex: leavesIndex)
            } catch let error as DatabaseError where error.isCannotOpen || leavesIndex && error.needsIndex {
                leavesIndex = false
            }
        }
        return try connect(paths, fileKey, extensions, busyTimeout, leavesIndex: leavesIndex)
    }

    private static func connect(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ extensions: SQLExtensions, _ busyTimeout: Duration,
        leavesIndex: Bool
    ) throws -> Connection {
        let connection = try ConnectionProfile.inspecting(Connection.size(paths.database))
            .with(fileKey, extensions).open(paths.database, busyTimeout: busyTimeout, leavesIndex: leavesIndex)
        try connection.proveReadable(paths.database, isPlaintext: fileKey == nil)
        return connection
    }

    /// Returns whether the file must be read alone: it cannot be written, and it is in WAL mode without a log.
    private static func readsAlone(_ paths: DatabasePaths, _ fileKey: FileKey?) throws -> Bool {
        guard !FileSystem.canWrite(paths.database), try (FileSystem.size(paths.wal) ?? 0) == 0 else { return false }
        let file = try DatabaseFile(path: paths.database)
        guard let fileKey else { return try FileHeader(file).isWriteAheadLog }
        // With a wrong key, this is an arbitrary number, and nothing can be read anyway.
        guard let page = try? file.firstPage(key: fileKey.key, settings: fileKey.settings) else { return false }
        return FileHeader(bytes: page, fileSize: 0).isWriteAheadLog
    }

    private static func withFileAlone<Result>(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ extensions: SQLExtensions, _ body: (Connection) throws -> Result
    ) throws -> Result {
        let before = try FileSystem.status(paths.database)
        let connection = try ConnectionProfile.inspecting(Connection.size(paths.database))
            .with(fileKey, extensions).open(paths.database, ignoresLog: true)
        defer { connection.close() }
        let result = Swift.Result {
            try connection.proveReadable(paths.database, isPlaintext: fileKey == nil)
            return try body(connection)
        }
        let after = try FileSystem.status(paths.database)
        guard before?.identity == after?.identity, before?.modified == after?.modified, before?.size == after?.size
        else {
            throw StoreError(
                .busy, path: paths.database, "another program wrote to the file while it was being read",
                advice: "stop the program that is writing to the file, and try again", changed: .nothing)
        }
        return try result.get()
    }

    /// Returns the journal mode of a database that is open for reading only.
    static func journalMode(of connection: Connection) throws -> String? {
        connection.ignoresLog ? "wal" : try connection.value(String.self, "PRAGMA journal_mode")
    }

    private static func removeOurs(_ paths: DatabasePaths, hadLog: Bool, hadSharedMemory: Bool) throws {
        let madeLog = try !hadLog && FileSystem.size(paths.wal) == 0
        let madeSharedMemory = try !hadSharedMemory && FileSystem.exists(paths.sharedMemory)
        guard madeLog || madeSharedMemory, FileSystem.canWrite(paths.database) else { return }
        // If the file was removed or made unwritable meanwhile, the program that did so is responsible for the files
        // beside it.
        guard let file = try? DatabaseFile(path: paths.database, access: .readWrite) else { return }
        _ = try file.whileUnused {
            if madeLog, try FileSystem.size(paths.wal) == 0 { try FileSystem.removeIfPresent(paths.wal) }
            if madeSharedMemory { try FileSystem.removeIfPresent(paths.sharedMemory) }
        }
    }
}
