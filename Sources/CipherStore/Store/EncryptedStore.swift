public import CipherSQLite
internal import CipherSystemFiles

/// An open database, encrypted and up to date: one writer and several readers, in any number of tasks.
///
/// ```swift
/// let store = try await EncryptedStore.open(configuration, directory: directory, keyProvider: keys)
/// try await store.write { db in
///     try db.execute("INSERT INTO chat(uid, body) VALUES (\(uid), \(body))")
/// }
/// let messages = try await store.read { db in
///     try db.rows(Message.self, "SELECT uid, body FROM chat WHERE uid = \(uid)")
/// }
/// ```
///
/// Each connection works on a queue of its own, so that no thread of Swift's cooperative pool is ever blocked. The key is
/// derived once for all of them. The file is in WAL mode, in which readers and the writer do not wait for each other;
/// where the file system cannot do it, they do, and ``report`` says so.
public final class EncryptedStore: Sendable {
    /// What opening did.
    public let report: OpenReport
    /// The database file, without symbolic links.
    public let path: String
    private let writer: ConnectionQueue
    private let readers: ConnectionQueue
    private let identity = StoreIdentity()
    private let watch = FileWatch()

    /// Opens the writer, so that what it cannot do is known now.
    init(_ connections: StoreConnections, maximumReaders: Int, report: OpenReport) throws {
        path = connections.path
        writer = ConnectionQueue("writer", path: path, capacity: 1, identity: identity) { try connections.writer() }
        readers = ConnectionQueue("reader", path: path, capacity: maximumReaders, identity: identity) {
            try connections.reader()
        }
        let mode = try writer.runBlocking(.read) { [changes = identity.changes] db in
            try changes.look(db)
            return try db.value(String.self, "PRAGMA journal_mode") ?? ""
        }
        self.report =
            mode == "wal" ? report : report.warning("readers wait for the writer: the file is not in WAL mode")
    }

    /// Closes, in the background, what was not closed before.
    deinit {
        watch.end()
        readers.close {}
        writer.close {}
    }

    /// Runs `body` on a reader, in which it sees the database as one moment left it.
    ///
    /// Up to ``Options/maximumReaders`` run at the same time, beside the writer; others wait in order. Cancelling the task
    /// takes a waiting read out, and interrupts the statement of a running one and its waiting for a lock.
    ///
    /// - Throws: What `body` throws; ``DatabaseError``, with `SQLITE_READONLY` where it tries to write and `SQLITE_AUTH`
    ///   where it runs what would outlast the transaction; ``StoreError``, with `closed` after the store was closed;
    ///   `CancellationError`.
    public func read<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await readers.run(.read, body)
    }

    /// Runs `body` on the writer in a transaction: on the disk when this returns, undone when `body` throws.
    ///
    /// One write runs at a time; others wait in order. Cancelling the task takes a waiting write out, and interrupts and
    /// undoes a running one; a commit that has begun is not undone, and returns.
    ///
    /// - Throws: What `body` throws; ``DatabaseError``, with `SQLITE_AUTH` where `body` runs what would outlast the
    ///   transaction, such as COMMIT or a pragma that sets something else; ``StoreError``, with `misuse` where `body` went on
    ///   after SQLite had rolled back, and `closed` after the store was closed; `CancellationError`. Nothing was changed then,
    ///   but for one case: where the commit itself fails with `SQLITE_IOERR`, its pages may be in the log, and if the process
    ///   ends before another write the next opening finds them committed.
    public func write<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await writer.run(.write, body)
    }

    /// Runs `body` as ``read(_:)`` does, and blocks the thread meanwhile.
    ///
    /// - Throws: As ``read(_:)``; ``StoreError`` with `misuse` inside of another closure of this store, also by way of
    ///   another store's.
    @available(*, noasync, message: "await read(_:) instead")
    public func readBlocking<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try readers.runBlocking(.read, body)
    }

    /// Runs `body` as ``write(_:)`` does, and blocks the thread meanwhile.
    ///
    /// - Throws: As ``write(_:)``; ``StoreError`` with `misuse` inside of another closure of this store, also by way of
    ///   another store's.
    @available(*, noasync, message: "await write(_:) instead")
    public func writeBlocking<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try writer.runBlocking(.write, body)
    }

    /// Writes the whole log into the database file, and empties the log where no connection reads it.
    ///
    /// A store does the first by itself when the log has 1,000 pages, and both as the last one to close. This is for the
    /// moments between, such as before an app is suspended or the file is copied. It runs between writes, and waits for
    /// those of other processes up to ``Options/busyTimeout``. Cancelling the task ends the waiting. Afterwards observations
    /// look once more.
    ///
    /// - Returns: Whether the whole log is in the file; `false` where a reader of an older state or another process holds it
    ///   off, which nothing is thrown for.
    /// - Throws: ``DatabaseError`` where the file cannot be written; ``StoreError`` with `closed` after the store was closed;
    ///   `CancellationError`.
    @discardableResult
    public func checkpoint() async throws -> Bool {
        try await writer.run(.outside) { try $0.checkpointer?.truncateLog() ?? true }
    }

    /// Checkpoints as ``checkpoint()`` does, and blocks the thread meanwhile.
    ///
    /// - Throws: As ``checkpoint()``; ``StoreError`` with `misuse` inside of a closure of this store.
    @available(*, noasync, message: "await checkpoint() instead")
    @discardableResult
    public func checkpointBlocking() throws -> Bool {
        try writer.runBlocking(.outside) { try $0.checkpointer?.truncateLog() ?? true }
    }

    /// Refuses what waits and what comes, lets what runs end, and closes the connections.
    ///
    /// The last one to close moves the log into the database file. A second call waits for the same end.
    public func close() async {
        stop()
        await withCheckedContinuation { continuation in
            readers.close { [writer] in
                writer.close { continuation.resume() }
            }
        }
    }

    /// Closes the store as ``close()`` does, and blocks the thread meanwhile.
    ///
    /// - Throws: ``StoreError`` with `misuse` inside of a closure of this store.
    @available(*, noasync, message: "await close() instead")
    public func closeBlocking() throws {
        try ConnectionQueue.refuseNesting(identity, path)
        stop()
        let done = BlockingAnswer<Void>()
        readers.close { [writer] in
            writer.close { done.give(.success(())) }
        }
        try done.wait()
    }

    /// Whether it was closed, or is closing.
    var isClosed: Bool { writer.isStopped }

    /// The writer closes last, but takes nothing more as soon as the readers do not.
    private func stop() {
        readers.stop()
        writer.stop()
        watch.end()
        changes.close(writer.closedError)
    }

    // MARK: Observing

    /// Who is told of commits.
    var changes: ChangeBroadcaster { identity.changes }

    /// Tells the observations of what other processes, and other stores of this one, have committed by now.
    ///
    /// A store that is observed looks by itself when its files change, and when it writes; this is for file systems that
    /// tell nothing of changes, such as those of other machines. Waits for the write that runs.
    ///
    /// - Throws: ``StoreError`` with `closed` after the store was closed; ``DatabaseError``; `CancellationError`.
    public func checkForChanges() async throws {
        guard changes.isObserved else { return }
        try await writer.run(.read) { [changes] in try changes.look($0) }
    }

    /// Tells of the commits of others after a file has changed.
    ///
    /// A file is written before its commit can be seen, and nothing is told of that moment. But the other writer has the lock
    /// until then, so it is waited for.
    private func lookForOthers(_ finished: @escaping @Sendable () -> Void) {
        let look = ConnectionJob(.outside, of: identity) { [changes] connection throws -> Void in
            try connection.execute("BEGIN IMMEDIATE")
            defer { try? connection.execute("ROLLBACK") }
            try changes.look(connection)
        } completion: { [weak self] result in
            if case .failure(let error as DatabaseError) = result, error.isBusy, let self {
                return lookForOthers(finished)
            }
            finished()
        }
        writer.submit(look)
    }

    /// From now on the commits of others are looked for when the files change.
    func watchFiles() {
        #if canImport(Darwin)
            // SQLite never locks the log, and all that others commit gets into it.
            let files = [path + "-wal"]
        #else
            // Without a log it is the database that is written.
            let files = [path, path + "-wal"]
        #endif
        watch.begin(files) { [weak self] finished in
            guard let self else { return finished() }
            lookForOthers(finished)
        }
    }
}
