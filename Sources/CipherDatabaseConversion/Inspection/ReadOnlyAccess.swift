internal import CipherErrors
internal import CipherPageSealing
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Reads a database without leaving a trace beside it.
package enum ReadOnlyAccess {
    /// Lends a read-only connection.
    ///
    /// A read-only connection to a WAL database makes a `-shm` (and an empty `-wal`) where there was none. They are
    /// removed again, under the lock that SQLite itself takes for it, unless somebody else uses the file by then. That lock
    /// is not to be had on a file that may not be written, so of such a one nothing but the file is read, where it has no
    /// log. Then no lock keeps others from writing either, and the file is looked at again afterwards.
    /// Source: SQLite, "Write-Ahead Logging", section 5, "Read-Only Databases".
    ///
    /// - Parameter isAlone: Whether no other connection of this process is opened to the file meanwhile. The index of a
    ///   log that a killed writer left is then only read; else SQLite makes it anew.
    /// - Throws: What `body` throws, and ``StoreError`` with `busy` if another program wrote to such a file meanwhile.
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
            let leavesIndex = isAlone && hadLog && hadSharedMemory && Engine.current.readsLogWithoutIndex
            let connection = try open(paths, fileKey, extensions, busyTimeout, leavesIndex: leavesIndex)
            defer { connection.close() }
            result = .success(try body(connection))
        } catch {
            result = .failure(error)
        }
        try removeOurs(paths, hadLog: hadLog, hadSharedMemory: hadSharedMemory)
        return try result.get()
    }

    /// Opens a connection, again where SQLite saw a log or an index that was gone when it opened it: the last connection of
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

    /// Whether nothing but the file may be read, and need be.
    private static func readsAlone(_ paths: DatabasePaths, _ fileKey: FileKey?) throws -> Bool {
        guard !FileSystem.canWrite(paths.database), try (FileSystem.size(paths.wal) ?? 0) == 0 else { return false }
        let file = try DatabaseFile(path: paths.database)
        guard let fileKey else { return try FileHeader(file).isWriteAheadLog }
        // Under a key that does not fit this is any number, and nothing is read anyway.
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
                .busy, path: paths.database, "another program wrote to the file while it was read",
                advice: "find out which program uses the file, and try again", changed: .nothing)
        }
        return try result.get()
    }

    /// The journal mode of a database that is lent for reading only.
    static func journalMode(of connection: Connection) throws -> String? {
        connection.ignoresLog ? "wal" : try connection.value(String.self, "PRAGMA journal_mode")
    }

    private static func removeOurs(_ paths: DatabasePaths, hadLog: Bool, hadSharedMemory: Bool) throws {
        let madeLog = try !hadLog && FileSystem.size(paths.wal) == 0
        let madeSharedMemory = try !hadSharedMemory && FileSystem.exists(paths.sharedMemory)
        guard madeLog || madeSharedMemory, FileSystem.canWrite(paths.database) else { return }
        // Whoever has removed the file, or taken the permission away, has to see to what is beside it.
        guard let file = try? DatabaseFile(path: paths.database, access: .readWrite) else { return }
        _ = try file.whileUnused {
            if madeLog, try FileSystem.size(paths.wal) == 0 { try FileSystem.removeIfPresent(paths.wal) }
            if madeSharedMemory { try FileSystem.removeIfPresent(paths.sharedMemory) }
        }
    }
}
