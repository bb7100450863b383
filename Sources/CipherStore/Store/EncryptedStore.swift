public import CipherSQLite
internal import CipherSystemFiles

/// An open, encrypted and migrated database, with one writer and several readers, for use in any number of tasks.
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
/// Each connection works on its own queue, so no thread of Swift's cooperative pool is ever blocked. The key is derived
/// once for all connections. The file is in WAL mode, in which readers and the writer do not wait for each other. If
/// the file system does not support it, they do wait, and ``report`` contains a warning.
public final class EncryptedStore: Sendable {
    /// The report of what opening did.
    public let report: OpenReport
    /// The path of the database file, with symbolic links resolved.
    public let path: String
    /// The encryption in the background if the configuration requests it and the file was a legacy file; otherwise
    /// `nil`.
    public let conversion: StoreConversion?
    let writer: ConnectionQueue
    let readers: ConnectionQueue
    /// The file to which the connections are opened.
    let file: StoreFile
    let identity: StoreIdentity
    /// Held while suspension begins or ends for both queues.
    let suspension = Lock()
    let watch = StoreWatch()
    package let backups = RunningBackups()

    /// The way in which the store reads.
    private let reading: Reading

    private enum Reading: Sendable {
        /// On separate reader connections.
        case readers(StoreConnections)
        /// On the writer's connection, which is the only one.
        case writer
        /// On a connection opened for each read.
        case eachByItself(ConnectionAccess)
    }

    /// Creates a store, and opens the writer so that its failures are known at once.
    ///
    /// - Parameter isConverted: Whether the database will be encrypted while it is open.
    init(
        _ connections: StoreConnections, maximumReaders: Int, report: OpenReport, isConverted: Bool = false
    ) throws {
        conversion = isConverted ? StoreConversion() : nil
        path = connections.path
        file = connections.file
        reading = .readers(connections)
        let identity = StoreIdentity(connections.events ?? EventLog(database: path, tell: nil))
        self.identity = identity
        writer = ConnectionQueue("writer", path: path, capacity: 1, identity: identity) { try connections.writer() }
        readers = ConnectionQueue("reader", path: path, capacity: maximumReaders, identity: identity) {
            try connections.reader()
        }
        let mode = try writer.runBlocking(.read) { [changes = identity.changes] db in
            try changes.look(db)
            return try db.value(String.self, "PRAGMA journal_mode") ?? ""
        }
        self.report =
            mode == "wal" ? report : report.warning("the file is not in WAL mode, so readers must wait for the writer")
    }

    /// Creates a store on an in-memory database.
    init(inMemory connections: StoreConnections, report: OpenReport) {
        conversion = nil
        path = connections.path
        file = connections.file
        reading = .writer
        identity = StoreIdentity(EventLog(database: path, tell: nil))
        self.report = report
        writer = ConnectionQueue("memory", path: path, capacity: 1, identity: identity) { try connections.writer() }
        readers = writer
        // No other connection can write.
        watch.end()
    }

    /// Creates a read-only store that runs one read at a time.
    init(readOnly file: StoreFile, _ events: EventLog, report: OpenReport, _ access: @escaping ConnectionAccess) {
        conversion = nil
        path = file.path
        self.file = file
        identity = StoreIdentity(events)
        reading = .eachByItself(access)
        self.report = report
        let refusal = StoreError(
            .readOnly, path: file.path, "the store was opened read-only", advice: "open the database with open()",
            changed: .nothing)
        readers = ConnectionQueue("reader", path: file.path, capacity: 1, identity: identity) { throw refusal }
        writer = ConnectionQueue(
            "writer", path: file.path, capacity: 1, identity: identity, refusing: refusal
        ) { throw refusal }
        watch.end()
    }

    /// Closes the connections in the background if the store was not closed.
    deinit {
        watch.end()
        let isOpen = !isClosed
        readers.close { [writer, events] in
            writer.close { if isOpen { events(.closed) } }
        }
    }

    /// Runs `body` on a reader, with a consistent view of the database.
    ///
    /// Up to ``Options/maximumReaders`` reads run at the same time, alongside the writer; further reads wait in order.
    /// Canceling the task removes a waiting read, and interrupts the statement of a running one and its wait for a
    /// lock.
    ///
    /// - Throws: Any error thrown by `body`; ``DatabaseError``, with `SQLITE_READONLY` if `body` tries to write and
    ///   `SQLITE_AUTH` if it runs a statement whose effect would outlast the transaction; ``StoreError``, with the code
    ///   `closed` after the store was closed; `CancellationError`.
    public func read<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        switch reading {
        case .readers: try await readers.run(.read, body)
        case .writer: try await writer.run(.readOnWriter, body)
        case .eachByItself(let access): try await readers.run(on: access, body)
        }
    }

    /// Runs `body` on the writer in a transaction, which is on the disk when this returns and is rolled back if `body`
    /// throws.
    ///
    /// One write runs at a time; further writes wait in order. Canceling the task removes a waiting write, and
    /// interrupts and rolls back a running one. A commit that has begun is not rolled back, and this returns normally.
    ///
    /// - Throws: Any error thrown by `body`; ``DatabaseError``, with `SQLITE_AUTH` if `body` runs a statement whose
    ///   effect would outlast the transaction, such as COMMIT or a pragma that changes a setting; ``StoreError``, with
    ///   the code `misuse` if `body` continued after SQLite had rolled back, and `closed` after the store was closed;
    ///   `CancellationError`. After an error nothing was changed, with one exception: if the commit itself fails with
    ///   `SQLITE_IOERR`, its pages may be in the log, and if the process ends before another write, the next opening
    ///   finds them committed.
    @discardableResult
    public func write<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await writer.run(.write, body)
    }

    /// Runs `body` on the writer without a transaction around it.
    ///
    /// Use this for statements that SQLite runs only outside a transaction, such as `VACUUM` and `PRAGMA foreign_keys`,
    /// or for several transactions in one turn, each with `Connection.transaction`.
    ///
    /// ```swift
    /// try await store.writeWithoutTransaction { db in
    ///     try db.execute("PRAGMA foreign_keys = OFF")
    ///     try db.transaction { try rebuild(db) }
    /// }
    /// ```
    ///
    /// Each statement outside a transaction is committed on its own, and stays committed even if an error is thrown
    /// later. The connection is closed after `body`, which discards its settings and temporary tables. Other writes
    /// wait meanwhile. Canceling the task interrupts the running statement. Afterwards, every observation reads again.
    /// Do not run `VACUUM` before a backfill of a table without an INTEGER PRIMARY KEY has finished: it may change the
    /// rowids.
    ///
    /// - Throws: Any error thrown by `body`; ``DatabaseError`` with `SQLITE_AUTH` for `ATTACH`, for pragmas that change
    ///   a key, the journal or how commits reach the disk, and for `PRAGMA wal_checkpoint`; ``StoreError``, with the
    ///   code `misuse` if `body` left a transaction open, which is rolled back, and otherwise the codes of
    ///   ``write(_:)``; `CancellationError`.
    public func writeWithoutTransaction<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        try await writer.run(.perStatement, body)
    }

    /// Runs `body` as ``writeWithoutTransaction(_:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as ``writeWithoutTransaction(_:)``; ``StoreError`` with the code `misuse` inside
    ///   another closure of this store, even if called through another store's closure.
    @available(*, noasync, message: "await writeWithoutTransaction(_:) instead")
    public func writeWithoutTransactionBlocking<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try writer.runBlocking(.perStatement, body)
    }

    /// Runs `body` as ``read(_:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as ``read(_:)``; ``StoreError`` with the code `misuse` inside another closure of this
    ///   store, even if called through another store's closure.
    @available(*, noasync, message: "await read(_:) instead")
    public func readBlocking<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        switch reading {
        case .readers: try readers.runBlocking(.read, body)
        case .writer: try writer.runBlocking(.readOnWriter, body)
        case .eachByItself(let access): try readers.runBlocking(on: access, body)
        }
    }

    /// Runs `body` as ``write(_:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as ``write(_:)``; ``StoreError`` with the code `misuse` inside another closure of this
    ///   store, even if called through another store's closure.
    @available(*, noasync, message: "await write(_:) instead")
    @discardableResult
    public func writeBlocking<Output: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Output
    ) throws -> Output {
        try writer.runBlocking(.write, body)
    }

    /// Writes the whole write-ahead log into the database file, and empties the log if no connection reads it.
    ///
    /// A store writes the log into the file on its own when the log has 1,000 pages, and also empties it when the last
    /// connection closes. Call this at other times, such as before an app is suspended or the file is copied. It runs
    /// between writes, and waits for writes of other processes for up to ``Options/busyTimeout``. Canceling the task
    /// ends the wait. Afterwards, every observation reads again.
    ///
    /// - Returns: Whether the whole log is in the file; `false` if a reader of an older state or another process
    ///   prevents it, which is not an error.
    /// - Throws: ``DatabaseError`` if the file cannot be written; ``StoreError`` with the code `closed` after the store
    ///   was closed; `CancellationError`.
    @discardableResult
    public func checkpoint() async throws -> Bool {
        try await writer.run(.outside) { try $0.checkpointer?.truncateLog() ?? true }
    }

    /// Checkpoints as ``checkpoint()`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as ``checkpoint()``; ``StoreError`` with the code `misuse` inside a closure of this
    ///   store.
    @available(*, noasync, message: "await checkpoint() instead")
    @discardableResult
    public func checkpointBlocking() throws -> Bool {
        try writer.runBlocking(.outside) { try $0.checkpointer?.truncateLog() ?? true }
    }

    /// Refuses waiting and new calls, lets running ones finish, and closes the connections.
    ///
    /// Closing the last connection moves the log into the database file. A second call waits for this too.
    public func close() async {
        if let conversion {
            conversion.cancel()
            _ = try? await conversion.value
        }
        let wasOpen = stop()
        await withCheckedContinuation { continuation in
            readers.close { [writer] in
                writer.close { continuation.resume() }
            }
        }
        file.forgetKey()
        if wasOpen { events(.closed) }
    }

    /// Closes the store as ``close()`` does, but blocks the calling thread.
    ///
    /// - Throws: ``StoreError`` with the code `misuse` inside a closure of this store.
    @available(*, noasync, message: "await close() instead")
    public func closeBlocking() throws {
        if conversion?.waitsForCaller == true {
            throw StoreError(
                .misuse, path: path,
                "closeBlocking was called from the event callback of an encryption, so the call would never return",
                advice: "close the store on another thread")
        }
        var wasOpen = false
        try ConnectionQueue.waitForEnd(of: [readers, writer]) { done in
            conversion?.cancel()
            wasOpen = stop()
            readers.close { [writer] in writer.close(done) }
        }
        file.forgetKey()
        conversion?.endBlocking()
        if wasOpen { events(.closed) }
    }

    /// Whether the store is closed or closing.
    var isClosed: Bool { readers.isStopped }

    /// Stops both queues.
    ///
    /// The writer closes last, but refuses new calls as soon as the readers do.
    ///
    /// - Returns: Whether the store was open.
    private func stop() -> Bool {
        let wasOpen = !isClosed
        readers.stop()
        writer.stop()
        watch.end()
        changes.close(readers.closedError)
        return wasOpen
    }

    /// The broadcaster of commits.
    var changes: ChangeBroadcaster { identity.changes }
    /// The log of the store's events.
    var events: EventLog { identity.events }

    /// - Throws: ``StoreError`` with the code `misuse` if the store has no file whose connections it could close.
    @discardableResult
    func ownConnections() throws -> StoreConnections {
        guard case .readers(let connections) = reading else {
            throw StoreError(
                .misuse, path: path, "an in-memory or read-only store does not support this operation",
                advice: "open the database with open()", changed: .nothing)
        }
        return connections
    }
}
