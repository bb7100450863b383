package import CipherSQLite
internal import CipherSystemFiles

/// Keeps everybody from committing to a database, from its making until ``end()``.
///
/// Connections that begin to read meanwhile all see the same commit.
package protocol WriterHold {
    /// Whether the database is in WAL mode, in which who reads continues seeing that commit when others write.
    ///
    /// In any other mode others can write only once no one reads.
    var isWriteAheadLog: Bool { get }

    /// Lets others commit; a second call does nothing.
    func end()
}

/// A writer's lock, on a separate connection.
package final class LockedWriter: WriterHold {
    private let connection: Connection
    package let isWriteAheadLog: Bool

    /// Takes the lock.
    ///
    /// - Parameter key: The key of the file, which has opened it; `nil` for a plaintext one.
    /// - Throws: `DatabaseError`, with `SQLITE_BUSY` if another connection has the lock all the time.
    package init(_ path: String, _ key: FileKey?, extensions: SQLExtensions, busyTimeout: Duration) throws {
        var profile = ConnectionProfile.settling(try Connection.size(path)).with(key, extensions)
        profile.checkpointsByItself = false
        connection = try profile.open(path, busyTimeout: busyTimeout)
        try connection.execute("BEGIN IMMEDIATE")
        try connection.proveReadable()
        isWriteAheadLog = try connection.value(String.self, "PRAGMA journal_mode") == "wal"
    }

    package func end() { connection.close() }
}
