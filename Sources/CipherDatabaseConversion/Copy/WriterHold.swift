package import CipherSQLite
internal import CipherSystemFiles

/// Prevents everybody from committing to a database, from its creation until ``end()``.
///
/// Connections that begin to read meanwhile all see the same commit.
package protocol WriterHold {
    /// Whether the database is in WAL mode, in which readers continue to see that commit when others write.
    ///
    /// In any other mode, others can write only when nobody reads.
    var isWriteAheadLog: Bool { get }

    /// Allows others to commit. A second call does nothing.
    func end()
}

/// A write lock on a separate connection.
package final class LockedWriter: WriterHold {
    private let connection: Connection
    package let isWriteAheadLog: Bool

    /// Takes the lock.
    ///
    /// - Parameter key: The key that has opened the file; `nil` for a plaintext file.
    /// - Throws: `DatabaseError`, with `SQLITE_BUSY` if another connection holds the lock for too long.
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
