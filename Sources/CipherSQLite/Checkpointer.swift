internal import CCipherEngine

/// Writes the log of a connection in WAL mode into the database file, while no other connection can begin the log anew.
///
/// SQLite's own automatic checkpoint does not look whether it can. A connection that commits between the checkpointer's
/// look at the log and its work may begin the log anew, and the checkpointer then marks commits as written that are
/// only in the log: they are lost when the log starts again once more. So the writer holds the lock of a writer, and
/// another connection checkpoints, for SQLite does not let one in a transaction do so. Source: SQLite, "Write-Ahead
/// Logging", "The WAL-Reset Bug": versions 3.7.0 to 3.51.2.
package final class Checkpointer {
    /// How many frames the log has when a commit is followed by a checkpoint, as by SQLite's default.
    private static let frames = 1_000

    private unowned let writer: Connection
    private let open: () throws -> Connection
    private var second: Connection?
    /// How many frames the log had after the writer's latest commit, until that was looked at.
    private var framesInLog = 0
    /// Is told how each checkpoint ended: whether the whole log is in the file.
    package var didEnd: ((Result<Bool, any Error>) -> Void)?

    /// Takes the place of SQLite's automatic checkpoint on a connection, which closes it.
    ///
    /// The corresponding C function is `sqlite3_wal_hook`.
    ///
    /// - Parameter open: Opens another connection to the same file, which waits for no one, when there is first a
    ///   checkpoint.
    fileprivate init(of writer: Connection, open: @escaping () throws -> Connection) {
        self.writer = writer
        self.open = open
        takeHook()
    }

    /// Has SQLite tell of each commit of the writer, and checkpoint none by itself.
    func takeHook() {
        // SQLite's automatic checkpoint is such a hook, and there is one: PRAGMA wal_autocheckpoint would remove it.
        _ = sqlite3_wal_hook(
            writer.handle,
            { context, _, _, frames in
                guard let context else { return SQLITE_OK }
                Unmanaged<Checkpointer>.fromOpaque(context).takeUnretainedValue().framesInLog = Int(frames)
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Checkpoints after a commit of the writer, where the log has grown long.
    ///
    /// It waits for no one, and a failure is none of the commit: the next one tries again.
    package func didCommit() {
        let isLong = framesInLog >= Self.frames
        framesInLog = 0
        guard isLong else { return }
        let outcome = Result { try writer.withoutWaiting { try writeLog() } }
        didEnd?(outcome)
    }

    /// Writes the log into the file, and truncates it to nothing where no connection reads it.
    ///
    /// Waits for the lock of a writer as the connection does.
    ///
    /// - Returns: Whether the whole log is in the file.
    /// - Throws: ``DatabaseError``, other than of locks.
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

    /// - Returns: Whether the whole log was written.
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

    /// Empties the log, where no connection reads it.
    ///
    /// TRUNCATE takes the lock of a writer itself, and continues without it where another has it. That the writer reads
    /// makes it safe: while it reads the log that does not start again, and while it reads the file alone nothing is
    /// copied there.
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

    /// If it cannot, the connection's owner closes it.
    private func rollBack() {
        try? writer.execute("ROLLBACK")
    }
}

extension Connection {
    /// Has ``checkpointer`` write the log into the file, and SQLite no more.
    ///
    /// - Parameter open: Opens another connection to the same file, which waits for no one, when it is first needed.
    package func checkpoint(by open: @escaping () throws -> Connection) {
        checkpointer = Checkpointer(of: self, open: open)
    }

    /// Has commits never checkpoint; the last connection that closes does, alone with the file.
    package func stopAutomaticCheckpoints() throws {
        try execute("PRAGMA wal_autocheckpoint = 0")
    }
}
