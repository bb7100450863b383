internal import CCipherEngine

/// Writes the log of a connection in WAL mode into the database file, while no other connection can restart the log.
///
/// SQLite's own automatic checkpoint does not check whether another connection can. A connection that commits after the
/// checkpointer has read the state of the log, but before it copies the log, may restart the log. The checkpointer then
/// marks commits as written that are only in the log, and they are lost when the log is restarted again. Therefore, the
/// writer holds the write lock while another connection checkpoints, because SQLite does not let a connection in a
/// transaction checkpoint. Source: SQLite, "Write-Ahead Logging", "The WAL-Reset Bug": versions 3.7.0 to 3.51.2.
package final class Checkpointer {
    /// The minimum number of frames in the log for a commit to be followed by a checkpoint, as in SQLite's default.
    private static let frames = 1_000

    private unowned let writer: Connection
    private let open: () throws -> Connection
    private var second: Connection?
    /// The number of frames in the log after the writer's latest commit; 0 after this number was checked.
    private var framesInLog = 0
    /// A closure that is called with the result of each checkpoint: whether the whole log is in the file.
    package var didEnd: ((Result<Bool, any Error>) -> Void)?

    /// Replaces SQLite's automatic checkpoint on a connection; the connection closes the checkpointer.
    ///
    /// The corresponding C function is `sqlite3_wal_hook`.
    ///
    /// - Parameter open: Opens another connection to the same file, which does not wait for locks; called for the first
    ///   checkpoint.
    fileprivate init(of writer: Connection, open: @escaping () throws -> Connection) {
        self.writer = writer
        self.open = open
        takeHook()
    }

    /// Makes SQLite report each of the writer's commits, and never checkpoint itself.
    func takeHook() {
        // SQLite's automatic checkpoint is also a WAL hook, and a connection has only one; PRAGMA wal_autocheckpoint
        // would remove this one.
        _ = sqlite3_wal_hook(
            writer.handle,
            { context, _, _, frames in
                guard let context else { return SQLITE_OK }
                Unmanaged<Checkpointer>.fromOpaque(context).takeUnretainedValue().framesInLog = Int(frames)
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Checkpoints after a commit of the writer, if the log has grown long.
    ///
    /// The checkpoint does not wait for locks, and its failure is not a failure of the commit; the next commit tries
    /// again.
    package func didCommit() {
        let isLong = framesInLog >= Self.frames
        framesInLog = 0
        guard isLong else { return }
        let outcome = Result { try writer.withoutWaiting { try writeLog() } }
        didEnd?(outcome)
    }

    /// Writes the log into the file, and truncates the log to zero length if no connection is reading it.
    ///
    /// The method waits for the write lock as the connection does.
    ///
    /// - Returns: Whether the whole log is in the file.
    /// - Throws: ``DatabaseError``, except if another connection has a lock.
    package func truncateLog() throws -> Bool {
        let outcome = Result {
            do {
                guard try writeLog() else { return false }
                try truncate()
                return true
            } catch let error as DatabaseError where error.isBusy && !writer.isCancelled() {
                return false
            }
        }
        didEnd?(outcome)
        return try outcome.get()
    }

    func close() {
        second?.end()
        second = nil
    }

    /// Writes the log into the file, and returns whether the whole log was written.
    private func writeLog() throws -> Bool {
        let second = try connection()
        try writer.execute("BEGIN IMMEDIATE")
        defer { rollBack() }
        var isWhole = false
        try second.forEachRow("PRAGMA wal_checkpoint(PASSIVE)") { row in
            let (isBusy, inLog) = (try row.get(Bool.self, at: 0), try row.get(Int.self, at: 1))
            let inFile = try row.get(Int.self, at: 2)
            isWhole = !isBusy && inFile == inLog
        }
        return isWhole
    }

    /// Truncates the log, if no connection is reading it.
    ///
    /// TRUNCATE takes the write lock itself, and continues without it if another connection has it. This is safe
    /// because the writer has a read transaction: while the writer reads the log, the log is not restarted, and while
    /// it reads only the file, nothing is copied to the file.
    private func truncate() throws {
        let second = try connection()
        try writer.execute("BEGIN DEFERRED")
        defer { rollBack() }
        _ = try writer.value(Int.self, "PRAGMA schema_version")
        try second.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func connection() throws -> Connection {
        if let second { return second }
        let opened = try open()
        second = opened
        return opened
    }

    /// Rolls the transaction back.
    ///
    /// If the rollback fails, the connection's owner closes the connection.
    private func rollBack() {
        try? writer.execute("ROLLBACK")
    }
}

extension Connection {
    /// Makes ``checkpointer`` rather than SQLite write the log into the file.
    ///
    /// - Parameter open: Opens another connection to the same file, which does not wait for locks; called when that
    ///   connection is first needed.
    package func checkpoint(by open: @escaping () throws -> Connection) {
        checkpointer = Checkpointer(of: self, open: open)
    }

    /// Prevents commits from checkpointing; only the last connection checkpoints, when it closes and no other one uses
    /// the file.
    package func stopAutomaticCheckpoints() throws {
        try execute("PRAGMA wal_autocheckpoint = 0")
    }
}
