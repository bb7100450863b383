package import CipherSQLite
internal import CipherSystemFiles

/// Prevents all connections from committing to a database, from the creation of this object until ``end()``.
///
/// All connections that begin to read during this time see the same commit.
package protocol WriterHold {
    /// Whether the database is in WAL mode, in which readers continue to see that commit when other connections
    /// write.
    ///
    /// In any other mode, a connection can write only while no other connection reads.
    var isWriteAheadLog: Bool { get }

    /// Adds a commit that changes nothing, and then allows other connections to commit.
    ///
    /// A connection that waits for its own turn to write may never get it while others write without a pause.
    func endWithCommit() throws

    /// Allows other connections to commit. A second call does nothing.
    func end()
}

extension Connection {
    /// Commits the open write transaction, which then changes one page at least: the first one, whose content stays the
    /// same.
    package func commitUnchangedPage() throws {
        let version = try value(Int.self, "PRAGMA user_version") ?? 0
        try execute(SQL(text: "PRAGMA user_version = \(String(version))"))
        try execute("COMMIT")
    }
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

    package func endWithCommit() throws {
        defer { end() }
        try connection.commitUnchangedPage()
    }

    package func end() { connection.close() }
}
