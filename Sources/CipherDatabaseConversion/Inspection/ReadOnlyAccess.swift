internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// Reads a database without leaving a trace beside it.
package enum ReadOnlyAccess {
    /// Lends a read-only connection.
    ///
    /// A read-only connection to a WAL database makes a `-shm` (and an empty `-wal`) where there was none. They are
    /// removed again, under the lock that SQLite itself takes for it, unless somebody else uses the file by then.
    ///
    /// - Parameter isAlone: Whether no other connection of this process is opened to the file meanwhile. The index of a
    ///   log that a killed writer left is then only read; else SQLite makes it anew.
    package static func withConnection<Result>(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ collations: [Collation], busyTimeout: Duration,
        isAlone: Bool, _ body: (Connection) throws -> Result
    ) throws -> Result {
        let hadLog = try FileSystem.exists(paths.wal)
        let hadSharedMemory = try FileSystem.exists(paths.sharedMemory)
        let result: Swift.Result<Result, any Error>
        do {
            let leavesIndex = isAlone && hadLog && hadSharedMemory && Engine.current.readsLogWithoutIndex
            let connection = try open(paths, fileKey, collations, busyTimeout, leavesIndex: leavesIndex)
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
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ collations: [Collation], _ busyTimeout: Duration,
        leavesIndex: Bool
    ) throws -> Connection {
        var leavesIndex = leavesIndex
        for _ in 1..<FileSystem.looks {
            do {
                return try connect(paths, fileKey, collations, busyTimeout, leavesIndex: leavesIndex)
            } catch let error as DatabaseError where error.isCannotOpen || leavesIndex && error.needsIndex {
                leavesIndex = false
            }
        }
        return try connect(paths, fileKey, collations, busyTimeout, leavesIndex: leavesIndex)
    }

    private static func connect(
        _ paths: DatabasePaths, _ fileKey: FileKey?, _ collations: [Collation], _ busyTimeout: Duration,
        leavesIndex: Bool
    ) throws -> Connection {
        let connection = try ConnectionProfile.inspecting(Connection.size(paths.database))
            .with(fileKey, collations).open(paths.database, busyTimeout: busyTimeout, leavesIndex: leavesIndex)
        try connection.proveReadable(paths.database, isPlaintext: fileKey == nil)
        return connection
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
