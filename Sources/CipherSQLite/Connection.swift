internal import CCipherEngine
internal import CipherErrors

/// An open database.
///
/// A connection is synchronous and not Sendable: use it on one thread at a time.
public final class Connection {
    /// The way in which a file is opened.
    public enum Mode: Sendable {
        /// Opens the file for reading only.
        case readOnly
        /// Opens an existing file for reading and writing.
        case readWrite
        /// Opens the file for reading and writing, and creates it if it does not exist.
        case create
    }

    /// The database file.
    public let path: String
    /// Whether the file is read without its log or journal, and without locks.
    package let ignoresLog: Bool
    /// Whether the file may be new and therefore empty: only a connection that writes can fill it.
    let mayBeEmpty: Bool
    /// The forms in which dates and UUIDs are written and read.
    @exclusivity(unchecked) public var columnForms = ColumnForms()
    /// How long a statement waits for another connection's lock.
    package let busyTimeout: Duration
    /// The connection's C handle.
    let handle: OpaquePointer
    // There is no exclusivity check at each use, because nothing that the cache does accesses it again.
    @exclusivity(unchecked) var cache = StatementCache(capacity: 64)
    /// The statements that closures compiled while the connection was lent to them.
    ///
    /// They are kept separate from ``cache``, because closures may not run everything that the connection itself may,
    /// and SQLite's authorizer is called only during compilation.
    @exclusivity(unchecked) var lentCache = StatementCache(capacity: 64)
    /// The statements of ``insert(_:into:)`` and related methods, valid until the schema changes.
    @exclusivity(unchecked) var valueStatements: [ValueStatementKey: ValueStatement] = [:]
    var savepointDepth = 0
    /// The error of a savepoint's rollback in the open transaction, which must not be committed then.
    var failedRollback: (any Error)?
    var progressHandler: ProgressHandler?
    /// The authorizer of statements while they are compiled.
    var authorizer: Authorizer?
    /// The object that writes the log into the file; `nil` if SQLite does that itself.
    package internal(set) var checkpointer: Checkpointer?
    /// The names of the collations that were registered, one of which may replace a collation of SQLite.
    package internal(set) var registeredCollations: Set<SchemaName> = []
    /// The library's own file layers that the connection uses, by the schema names of their files; they must outlive
    /// the connection.
    var layers: [String: FileLayer] = [:]
    /// The FTS3 tokenizers that the connection uses; they must outlive the connection.
    var tokenizers: [FTS3Module] = []
    /// The state of the key.
    var keyState = KeyState.none
    /// Whether the header of the main database is not encrypted, so that any key reads it.
    var hasReadableHeader = false
    /// Whether the main database or an attached one is encrypted.
    var usesCipher = false
    /// Whether statements run only inside a transaction.
    ///
    /// SQLite ends a transaction itself if the disk is full or a write is interrupted. Code that overlooks the error
    /// would continue outside the transaction, and each of its next statements would be committed separately.
    @exclusivity(unchecked) package var requiresTransaction = false

    /// Whether a new definition may contain a string in double quotes.
    var acceptsStringsInDefinitions = false
    /// Whether the connection is lent to an app's closure.
    @exclusivity(unchecked) var isLent = false
    /// A description of a forbidden operation that the closure performed on the connection.
    var misuseInLoan: String?
    /// Whether the raw handle is lent to a closure.
    var isRawHandleLent = false
    /// A closure that returns whether the work that uses the connection was canceled.
    package var isCancelled: () -> Bool = { false }
    /// The time when a statement was first blocked by another connection's lock, while that is measured.
    var waitingSince: ContinuousClock.Instant?
    /// The reason that the statement being compiled was refused.
    var refusal: String?
    /// A closure that is called with a statement's text after it is compiled and before it runs.
    @exclusivity(unchecked) var hasCompiled: (([UInt8]) throws -> Void)?
    /// Whether a statement of the caller is being compiled, as opposed to one that a running statement compiles, as
    /// modules do.
    package internal(set) var isCompiling = false
    /// Whether SQLite reports what compiled statements do while the connection is lent.
    var tellsOfSchemaChanges = false
    /// The tables that the last compiled statement reads and writes, if the connection is lent.
    var compiledAccess: StatementAccess?
    /// The tables read and written by the statements that SQLite compiled while a statement ran: that statement again,
    /// after a schema change, or a statement of a module.
    @exclusivity(unchecked) var lateAccess: StatementAccess?
    /// The tables that were read and written, while this is recorded.
    @exclusivity(unchecked) var reads: TableAccess?
    @exclusivity(unchecked) var writes: TableAccess?
    /// The statement that was recorded last; in a loop, it is also the next one.
    @exclusivity(unchecked) var latestRecorded: Statement?
    /// The number of the thread that may use the connection.
    let holder = UnsafeMutablePointer<UInt>.allocate(capacity: 1)

    /// Opens a file without touching it: SQLite reads it at the first statement.
    ///
    /// Sorters and temporary tables stay in memory: SQLite's own layer would write plaintext to a temporary folder. A
    /// profile may let them leave the memory through this library's layers, which encrypt them. The corresponding C
    /// function is `sqlite3_open_v2`.
    ///
    /// - Parameters:
    ///   - busyTimeout: How long a statement waits for another connection's lock.
    ///   - leavesIndex: Whether the index of the log (`-shm`), which must exist, is only read. If so, no other
    ///     connection of this process may open the file at the same time, because it would get an index that it cannot
    ///     write.
    ///   - ignoresLog: Whether the file is read without its log or journal, and without locks. The result may differ
    ///     from the database's content.
    ///   - layer: The file layer; `nil` for SQLite's own, which follows symbolic links.
    package init(
        path: String, mode: Mode, busyTimeout: Duration = .seconds(5), leavesIndex: Bool = false,
        ignoresLog: Bool = false, through layer: FileLayer? = nil
    ) throws {
        guard Engine.current.cipherMajor > 0 else {
            throw StoreError(
                .plainSQLite, path: path,
                "plain SQLite is linked instead of SQLCipher: data meant to be encrypted would be stored as plaintext",
                advice: "link libsqlcipher before any other SQLite library", changed: .nothing)
        }
        let flags =
            switch mode {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        var opened: OpaquePointer?
        let query = [
            leavesIndex ? "readonly_shm=1" : nil, ignoresLog ? "immutable=1" : nil, layer.map { "vfs=\($0.name)" },
        ].compactMap(\.self)
        let name = layer.map { $0.path ?? "copy" } ?? path
        let result = sqlite3_open_v2(
            FileURI.text(name, query: query.joined(separator: "&")), &opened,
            flags | (layer?.path == nil ? 0 : cs_open_without_links()) | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
                | SQLITE_OPEN_PRIVATECACHE, nil)
        guard result == SQLITE_OK, let opened else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let code = opened.map { sqlite3_extended_errcode($0) } ?? result
            let systemCode = opened.map { sqlite3_system_errno($0) } ?? 0
            sqlite3_close_v2(opened)
            throw DatabaseError(extendedCode: code, message: message, path: path, systemCode: systemCode)
        }
        self.path = path
        self.ignoresLog = ignoresLog
        mayBeEmpty = mode != .readOnly
        handle = opened
        layers["main"] = layer
        sqlite3_extended_result_codes(handle, 1)
        self.busyTimeout = busyTimeout
        holder.initialize(to: Self.anyone)
        waitForLocks()
        try execute("PRAGMA temp_store = MEMORY")
    }

    /// Opens an encrypted file and verifies the key by reading the schema.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_NOTADB` if the key does not fit or the file is damaged.
    package convenience init(
        path: String, mode: Mode, key: CipherKey, settings: CipherSettings, busyTimeout: Duration = .seconds(5),
        through layer: FileLayer? = nil
    ) throws {
        try self.init(path: path, mode: mode, busyTimeout: busyTimeout, through: layer)
        try setKey(key, settings: settings)
        try proveReadable()
    }

    deinit {
        end()
        holder.deallocate()
    }

    private var isClosed = false

    /// Reports failures in the library's own file layers that SQLite and SQLCipher do not check for.
    ///
    /// - Throws: ``DatabaseError``.
    package func checkLayers() throws {
        for layer in layers.values { try layer.check(path) }
    }

    /// Closes the connection.
    ///
    /// A second call does nothing, and any later use of the connection is refused. A connection that is or was lent to
    /// a closure is closed by its owner: in the closure, this call closes nothing, and the closure fails with
    /// `SQLITE_MISUSE`.
    ///
    /// The corresponding C function is `sqlite3_close_v2`.
    public func close() {
        guard isUsable else { return }
        guard !isLent else {
            misuseInLoan = "a closure tried to close a connection that it does not own: remove the call to close()"
            return
        }
        end()
    }

    /// Closes the connection, whichever thread used it last.
    ///
    /// Only the owner of the connection may call this.
    package func end() {
        guard !isClosed else { return }
        isClosed = true
        checkpointer?.close()
        takeBack()
        cache.removeAll()
        lentCache.removeAll()
        guard keyState != .damaged else { return }
        sqlite3_close_v2(handle)
    }

    func error(_ code: Int32, sql: String? = nil) -> DatabaseError {
        if code & 0xff == SQLITE_NOMEM, keyState == .given { keyState = .damaged }
        if code & 0xff == SQLITE_AUTH, let refusal {
            // The error omits the SQL, which may contain a key.
            self.refusal = nil
            return DatabaseError(extendedCode: code, message: refusal, path: path)
        }
        let extended = sqlite3_extended_errcode(handle)
        let error = DatabaseError(
            extendedCode: extended & 0xff == code & 0xff ? extended : code,
            message: String(cString: sqlite3_errmsg(handle)), sql: sql, path: path,
            systemCode: [SQLITE_CANTOPEN, SQLITE_IOERR].contains(code & 0xff) ? sqlite3_system_errno(handle) : 0)
        return usesCipher ? error.inEncryptedDatabase : error
    }

    func check(_ result: Int32, sql: String? = nil) throws {
        guard result == SQLITE_OK else { throw error(result, sql: sql) }
    }
}
