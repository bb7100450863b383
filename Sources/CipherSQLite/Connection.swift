internal import CCipherEngine
internal import CipherErrors

/// An open database.
///
/// Synchronous, and not Sendable: one thread at a time.
public final class Connection {
    /// How a file is opened.
    public enum Mode: Sendable {
        /// Only to read.
        case readOnly
        /// To read and write a file that is there.
        case readWrite
        /// Read and write, and made where there is none.
        case create
    }

    /// The database file.
    public let path: String
    /// Whether the file is read without its log or journal, and without locks.
    package let ignoresLog: Bool
    /// In which form dates and UUIDs are written and read.
    @exclusivity(unchecked) public var columnForms = ColumnForms()
    /// How long a statement waits for another connection's lock.
    package let busyTimeout: Duration
    /// What C calls the connection.
    let handle: OpaquePointer
    // Exclusive without a check at each use: nothing that the cache does comes back to it.
    @exclusivity(unchecked) var cache = StatementCache(capacity: 64)
    /// What closures compiled while the connection was lent to them.
    ///
    /// Apart from ``cache``: they may not run all that the connection itself may, and SQLite is asked while it compiles.
    @exclusivity(unchecked) var lentCache = StatementCache(capacity: 64)
    /// The statements of ``insert(_:into:)`` and its kin, while the schema stays.
    @exclusivity(unchecked) var valueStatements: [ValueStatementKey: ValueStatement] = [:]
    var savepointDepth = 0
    var progressHandler: ProgressHandler?
    /// Who judges statements while they are compiled.
    var authorizer: Authorizer?
    /// What writes the log into the file, where that is not SQLite.
    package internal(set) var checkpointer: Checkpointer?
    /// The file layers of ours that it uses, by the schemas of their files; they must outlive it.
    var layers: [String: FileLayer] = [:]
    /// The tokenizers of FTS3 that it uses; they must outlive it.
    var tokenizers: [FTS3Module] = []
    /// What is known of the key.
    var keyState = KeyState.none
    /// Whether statements run only inside a transaction.
    ///
    /// SQLite ends a transaction by itself when the disk is full or a write is interrupted. Whoever overlooks that
    /// error would continue outside it, and each of the next statements would be committed alone.
    @exclusivity(unchecked) package var requiresTransaction = false

    /// Whether a string in double quotes may stand in a new definition.
    var acceptsStringsInDefinitions = false
    /// Whether a closure of an app has the connection.
    @exclusivity(unchecked) var isLent = false
    /// What that closure did to it which no closure may do, in words.
    var misuseInLoan: String?
    /// Whether C has its handle.
    var isRawHandleLent = false
    /// Whether the work was cancelled for which the connection is used.
    package var isCancelled: () -> Bool = { false }
    /// When a statement first found another connection's lock in its way, while that is measured.
    var waitingSince: ContinuousClock.Instant?
    /// Why the statement that is compiled was refused.
    var refusal: String?
    /// Called with a statement's text once it is compiled and before it runs.
    @exclusivity(unchecked) var hasCompiled: (([UInt8]) throws -> Void)?
    /// Whether a statement of the caller's is being compiled, and not one that a running one compiles, as modules do.
    package internal(set) var isCompiling = false
    /// Whether SQLite tells what the statements that are compiled do, while the connection is lent.
    var tellsOfSchemaChanges = false
    /// What the statement that was compiled last reads and writes, where the connection is lent.
    var compiledAccess: StatementAccess?
    /// The same of what SQLite compiled while a statement ran: that statement anew, after a change of the schema, or one of
    /// a module's.
    @exclusivity(unchecked) var lateAccess: StatementAccess?
    /// What was read and written, while that is recorded.
    @exclusivity(unchecked) var reads: TableAccess?
    @exclusivity(unchecked) var writes: TableAccess?
    /// The statement that was recorded last: in a loop it is the next one, too.
    @exclusivity(unchecked) var latestRecorded: Statement?
    /// The thread that may use the connection, by its number.
    let holder = UnsafeMutablePointer<UInt>.allocate(capacity: 1)

    /// Opens a file without touching it: SQLite reads it at the first statement.
    ///
    /// Sorters and temporary tables stay in memory (SQLCipher's Debian build would spill plaintext to a temporary
    /// folder). The corresponding C function is `sqlite3_open_v2`.
    ///
    /// - Parameters:
    ///   - busyTimeout: How long a statement waits for another connection's lock.
    ///   - leavesIndex: Whether the index of a log (`-shm`), which must be there, is only read. No other connection of
    ///     this process may be opened to the file meanwhile: it would get an index that it cannot write.
    ///   - ignoresLog: Whether the file is read without its log or journal, and without locks: not what the database holds.
    ///   - layer: Leads to the file; `nil` for SQLite's own, which opens whatever the path leads to.
    package init(
        path: String, mode: Mode, busyTimeout: Duration = .seconds(5), leavesIndex: Bool = false,
        ignoresLog: Bool = false, through layer: FileLayer? = nil
    ) throws {
        guard Engine.current.cipherMajor > 0 else {
            throw StoreError(
                .plainSQLite, path: path,
                "plain SQLite is linked instead of SQLCipher: data meant to be encrypted would be plaintext",
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
            sqlite3_close_v2(opened)
            throw DatabaseError(extendedCode: code, message: message, path: path)
        }
        self.path = path
        self.ignoresLog = ignoresLog
        handle = opened
        layers["main"] = layer
        sqlite3_extended_result_codes(handle, 1)
        self.busyTimeout = busyTimeout
        holder.initialize(to: Self.anyone)
        waitForLocks()
        try execute("PRAGMA temp_store = MEMORY")
    }

    /// Opens an encrypted file and proves the key by reading the schema.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_NOTADB` where the key does not fit or the file is damaged.
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

    /// Reports what failed in a file layer of ours where SQLite and SQLCipher do not look.
    ///
    /// - Throws: ``DatabaseError``.
    package func checkLayers() throws {
        for layer in layers.values { try layer.check(path) }
    }

    /// Closes the connection.
    ///
    /// A second call does nothing; whatever is asked of the connection afterwards is refused. A connection that is lent to a
    /// closure, or was, is closed by who lent it: there a call closes nothing, and the closure fails with `SQLITE_MISUSE`.
    ///
    /// The corresponding C function is `sqlite3_close_v2`.
    public func close() {
        guard isUsable else { return }
        guard !isLent else {
            misuseInLoan = "a closure closed a connection that it does not own: remove the call of close()"
            return
        }
        end()
    }

    /// Closes the connection, whoever had it last: for its owner.
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
            // Without the SQL, which may hold a key.
            self.refusal = nil
            return DatabaseError(extendedCode: code, message: refusal, path: path)
        }
        let extended = sqlite3_extended_errcode(handle)
        return DatabaseError(
            extendedCode: extended & 0xff == code & 0xff ? extended : code,
            message: String(cString: sqlite3_errmsg(handle)), sql: sql, path: path)
    }

    func check(_ result: Int32, sql: String? = nil) throws {
        guard result == SQLITE_OK else { throw error(result, sql: sql) }
    }
}
