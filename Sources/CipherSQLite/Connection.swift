internal import CSQLCipher
internal import CSQLCipherShims

/// An open database.
///
/// Synchronous, and not Sendable: one thread at a time.
public final class Connection {
    /// How a file is opened.
    package enum Mode: Sendable {
        case readOnly
        case readWrite
        /// Read and write, and made where there is none.
        case create
    }

    /// The database file.
    public let path: String
    private let handle: OpaquePointer
    // Exclusive without a check at each use: nothing that the cache does comes back to it.
    @exclusivity(unchecked) private var cache = StatementCache(capacity: 64)
    private var savepointDepth = 0
    private(set) var progressHandler: ProgressHandler?

    /// Opens a file without touching it: SQLite reads it at the first statement.
    ///
    /// Sorters and temporary tables stay in memory (SQLCipher's Debian build would spill plaintext to a temporary
    /// folder). The corresponding C function is `sqlite3_open_v2`.
    ///
    /// - Parameters:
    ///   - busyTimeout: How long a statement waits for another connection's lock, in milliseconds.
    ///   - leavesIndex: Whether the index of a log (`-shm`), which must be there, is only read. No other connection of
    ///     this process may be opened to the file meanwhile: it would get an index that it cannot write.
    package init(path: String, mode: Mode, busyTimeout: Int32 = 5_000, leavesIndex: Bool = false) throws {
        guard Engine.current.cipherMajor > 0 else {
            throw DatabaseError(
                extendedCode: DatabaseError.misuse,
                message:
                    "plain SQLite is linked, not SQLCipher: data that is meant to be encrypted would be plaintext; "
                    + "link libsqlcipher", path: path)
        }
        let flags =
            switch mode {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        var opened: OpaquePointer?
        let result = sqlite3_open_v2(
            Self.uri(path, query: leavesIndex ? "readonly_shm=1" : ""), &opened,
            flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
        guard result == SQLITE_OK, let opened else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let code = opened.map { sqlite3_extended_errcode($0) } ?? result
            sqlite3_close_v2(opened)
            throw DatabaseError(extendedCode: code, message: message, path: path)
        }
        self.path = path
        handle = opened
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, busyTimeout)
        try execute("PRAGMA temp_store = MEMORY")
    }

    /// Opens an encrypted file and proves the key by reading the schema.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_NOTADB` where the key does not fit or the file is damaged.
    package convenience init(
        path: String, mode: Mode, key: CipherKey, settings: CipherSettings, busyTimeout: Int32 = 5_000
    ) throws {
        try self.init(path: path, mode: mode, busyTimeout: busyTimeout)
        try setKey(key, settings: settings)
        try proveReadable()
    }

    deinit {
        close()
    }

    private var isClosed = false

    /// Closes the connection.
    ///
    /// A second call does nothing; no other method may be called afterwards.
    ///
    /// The corresponding C function is `sqlite3_close_v2`.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        cache.removeAll()
        sqlite3_close_v2(handle)
    }

    func withHandle<Result>(_ body: (OpaquePointer) throws -> Result) rethrows -> Result {
        try body(handle)
    }

    func error(_ code: Int32, sql: String? = nil) -> DatabaseError {
        let extended = sqlite3_extended_errcode(handle)
        return DatabaseError(
            extendedCode: extended & 0xff == code & 0xff ? extended : code,
            message: String(cString: sqlite3_errmsg(handle)), sql: sql, path: path)
    }

    func check(_ result: Int32, sql: String? = nil) throws {
        guard result == SQLITE_OK else { throw error(result, sql: sql) }
    }

    // MARK: Key

    /// Gives the key and pins the cipher format, before the first read.
    ///
    /// The corresponding C function is `sqlite3_key_v2`, with the key's length explicit.
    ///
    /// - Parameter schema: The name of the file in this connection.
    package func setKey(_ key: CipherKey, settings: CipherSettings, schema: String = "main") throws {
        try key.keyBytes.withUnsafeBytes { bytes in
            try check(sqlite3_key_v2(handle, schema, bytes.baseAddress, Int32(bytes.count)))
        }
        // SQLCipher 4.6 writes to stderr at every wrong key, and a library is silent. The level is the process's, and
        // falls back when SQLCipher starts again after its last connection, so it is set here, behind the key.
        if Engine.current.cipherMajor >= 4 { try execute("PRAGMA cipher_log_level = NONE") }
        for pragma in settings.pragmas(engine: .current) {
            try execute(SQL(text: "PRAGMA \(schema).\(pragma)"))
        }
    }

    /// Attaches a file that is empty yet: plaintext, unless it is given a key before its first page is written.
    ///
    /// - Parameter fileSystem: The file layer that seals pages, for a file that gets no key; `nil` for SQLite's own.
    package func attachEmpty(
        _ path: String, as schema: String, sealingThrough fileSystem: SealingFileSystem? = nil
    ) throws {
        let uri = SQL.quoted(text: Self.uri(path, query: "mode=rw" + (fileSystem.map { "&vfs=\($0.name)" } ?? "")))
        try execute(SQL(text: "ATTACH \(uri) AS \(SQL.quoted(identifier: schema)) KEY ''"))
        guard fileSystem != nil else { return }
        // Pages of the size of SQLCipher's, with room behind their content for the seal.
        try execute(SQL(text: "PRAGMA \(SQL.quoted(identifier: schema)).page_size = \(PageSealer.pageSize)"))
        var reserved = Int32(PageSealer.reservedSize)
        try check(sqlite3_file_control(handle, schema, Self.reserveBytes, &reserved))
    }

    /// Attaches a plaintext file that exists.
    ///
    /// - Parameter isReadOnly: For a file that must not even have its journal rolled back.
    package func attachPlaintext(_ path: String, as schema: String, isReadOnly: Bool = false) throws {
        let uri = SQL.quoted(text: Self.uri(path, query: isReadOnly ? "mode=ro" : "mode=rw"))
        try execute(SQL(text: "ATTACH \(uri) AS \(SQL.quoted(identifier: schema)) KEY ''"))
    }

    /// Makes SQLite read the schemas of all files anew, whose rows were written as rows.
    ///
    /// SQLite forgets them when a change of any schema is rolled back.
    package func forgetSchemas() throws {
        try execute("BEGIN")
        try execute("CREATE TEMP TABLE cipherstore_forgotten(a)")
        try execute("ROLLBACK")
    }

    /// `SQLITE_FCNTL_RESERVE_BYTES`, which older headers do not name.
    private static let reserveBytes: Int32 = 38

    // MARK: Running SQL

    /// Runs one statement to its end and ignores its rows.
    ///
    /// - Throws: ``DatabaseError``.
    public func execute(_ sql: SQL) throws {
        try withStatement(sql) { statement in
            while try statement.step() {}
        }
    }

    /// Runs a text of several statements without values.
    ///
    /// - Throws: ``DatabaseError`` of the statement that failed; those before it have run.
    public func executeScript(_ script: String) throws {
        var text = script
        try text.withUTF8 { bytes in
            var rest = bytes
            while let next = try Statement.first(of: rest, on: self) {
                try checkTransaction(next.statement.sql)
                while try next.statement.step() {}
                rest = next.rest
            }
        }
    }

    /// Lends each row of a query to `body`, in order.
    ///
    /// - Throws: ``DatabaseError``, or what `body` throws, which ends the query.
    public func forEachRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(statement: statement)
            while try statement.step() { try body(row) }
        }
    }

    /// The first column of every row.
    ///
    /// - Throws: ``DatabaseError``.
    public func values<Column: ColumnReadable>(_ type: Column.Type = Column.self, _ sql: SQL) throws -> [Column] {
        var result: [Column] = []
        try forEachRow(sql) { result.append(try $0.get(at: 0)) }
        return result
    }

    /// The first column of the first row, `nil` where there is no row.
    ///
    /// - Throws: ``DatabaseError``, with `SQLITE_MISMATCH` where it is NULL and the type is not an optional.
    public func value<Column: ColumnReadable>(_ type: Column.Type = Column.self, _ sql: SQL) throws -> Column? {
        var result: Column?
        // The type is named, for what is inferred here is the optional, which takes NULL for a missing row.
        try withFirstRow(sql) { row in result = try row.get(Column.self, at: 0) }
        return result
    }

    /// Lends the first row of a query to `body`, where there is one.
    ///
    /// On its own because no type is generic here: where one is, Swift 6.3's optimizer cannot make a row.
    private func withFirstRow(_ sql: SQL, _ body: (borrowing Row) throws -> Void) throws {
        try withStatement(sql) { statement in
            let row = Row(statement: statement)
            if try statement.step() { try body(row) }
        }
    }

    /// The rowid of the latest insert.
    ///
    /// The corresponding C function is `sqlite3_last_insert_rowid`.
    public var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// How many rows the latest statement changed.
    ///
    /// The corresponding C function is `sqlite3_changes`.
    public var changes: Int { Int(sqlite3_changes(handle)) }

    /// Whether a transaction is open.
    ///
    /// The corresponding C function is `sqlite3_get_autocommit`.
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Lends a compiled statement with its values bound.
    package func withStatement<Result>(_ sql: SQL, _ body: (Statement) throws -> Result) throws -> Result {
        try checkTransaction(sql.text)
        let statement = try cache.take(sql) ?? Statement(sql.text, on: self)
        defer {
            statement.reset()
            cache.put(statement)
        }
        try statement.bind(valuesOf: sql)
        return try body(statement)
    }

    // MARK: Transactions

    /// Whether statements run only inside of a transaction.
    ///
    /// SQLite ends a transaction by itself when the disk is full or a write is interrupted. Whoever overlooks that error
    /// would go on outside of it, and each of the next statements would be committed alone.
    @exclusivity(unchecked) package var requiresTransaction = false

    private func checkTransaction(_ sql: @autoclosure () -> String) throws {
        guard requiresTransaction, !isInTransaction else { return }
        throw DatabaseError(
            extendedCode: DatabaseError.rolledBack, message: "the transaction has ended, so nothing more may run in it",
            sql: sql(), path: path)
    }

    /// How a transaction takes its lock.
    ///
    /// Source: SQLite, "Transaction".
    public enum TransactionKind: String, Sendable {
        /// Locks at the first read or write.
        case deferred = "DEFERRED"
        /// Takes the write lock at once.
        case immediate = "IMMEDIATE"
        /// Takes the write lock at once and keeps readers out too, except in WAL mode.
        case exclusive = "EXCLUSIVE"
    }

    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// Inside of a transaction it is a savepoint.
    ///
    /// - Throws: ``DatabaseError``, or what `body` throws.
    public func transaction<Result>(
        _ kind: TransactionKind = .immediate, _ body: () throws -> Result
    ) throws -> Result {
        guard !isInTransaction else { return try savepoint(body) }
        try execute(SQL(text: "BEGIN \(kind.rawValue)"))
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // SQLite may have rolled back by itself, for instance on a full disk.
            if isInTransaction { try execute("ROLLBACK") }
            throw error
        }
    }

    /// Runs `body` in a savepoint: kept when it returns, undone when it throws.
    ///
    /// - Throws: ``DatabaseError``, or what `body` throws.
    public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        savepointDepth += 1
        defer { savepointDepth -= 1 }
        let name = "cipherstore_\(savepointDepth)"
        try execute(SQL(text: "SAVEPOINT \(name)"))
        do {
            let result = try body()
            try execute(SQL(text: "RELEASE \(name)"))
            return result
        } catch {
            if isInTransaction {
                try execute(SQL(text: "ROLLBACK TO \(name)"))
                try execute(SQL(text: "RELEASE \(name)"))
            }
            throw error
        }
    }

    // MARK: Settings

    /// Accepts strings in double quotes in old schemas.
    ///
    /// Engines before SQLite 3.29 always do.
    package func allowDoubleQuotedStrings() {
        _ = cs_config_double_quoted_strings(handle, 1)
    }

    /// Makes new files carry the header of SQLite's first schema format.
    package func useLegacyFileFormat() throws {
        if cs_config_legacy_file_format(handle, 1) != SQLITE_OK { try execute("PRAGMA legacy_file_format = ON") }
    }

    /// Functions in the schema that are not innocuous may not run.
    ///
    /// Engines before SQLite 3.31 do not know the switch.
    package func distrustSchema() {
        _ = cs_config_trusted_schema(handle, 0)
    }

    /// Refuses SQL that can damage the file.
    ///
    /// Engines before SQLite 3.26 do not know the switch.
    package func beDefensive() {
        _ = cs_config_defensive(handle, 1)
    }

    /// Runs `body` while no trigger fires.
    package func withoutTriggers<Result>(_ body: () throws -> Result) throws -> Result {
        try check(cs_config_triggers(handle, 0))
        // Switching them on again fails no more than switching them off did.
        defer { _ = cs_config_triggers(handle, 1) }
        return try body()
    }

    /// Makes the statement that runs in another thread fail with `SQLITE_INTERRUPT`.
    package var interrupter: Interrupter { Interrupter(handle: handle) }

    /// Calls `body` every `steps` steps of SQLite's virtual machine; `false` ends the statement with
    /// `SQLITE_INTERRUPT`.
    ///
    /// `nil` removes it.
    ///
    /// The corresponding C function is `sqlite3_progress_handler`.
    package func setProgressHandler(every steps: Int32, _ body: (() -> Bool)?) {
        setProgressHandler(body.map { ProgressHandler(steps: steps, body: $0) })
    }

    /// The same, of a handler that was in force before.
    func setProgressHandler(_ handler: ProgressHandler?) {
        progressHandler = handler
        guard let progressHandler else {
            sqlite3_progress_handler(handle, 0, nil, nil)
            return
        }
        sqlite3_progress_handler(
            handle, progressHandler.steps,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ProgressHandler>.fromOpaque(context).takeUnretainedValue().body() ? 0 : 1
            }, Unmanaged.passUnretained(progressHandler).toOpaque())
    }

    // MARK: File names

    /// A `file:` URI, in which every byte that means something in a URI is escaped.
    ///
    /// Source: SQLite, "URI Filenames".
    static func uri(_ path: String, query: String = "") -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        // Behind two slashes the first part of a relative name would be the name of a machine.
        var bytes: [UInt8] = Array((path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:").utf8)
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                bytes.append(byte)
            default:
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        if !query.isEmpty { bytes += Array("?\(query)".utf8) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// What is asked, every so many steps of SQLite's virtual machine, whether a statement may go on.
final class ProgressHandler {
    fileprivate let steps: Int32
    fileprivate let body: () -> Bool

    init(steps: Int32, body: @escaping () -> Bool) {
        self.steps = steps
        self.body = body
    }
}

/// Ends the running statement of a connection from any thread.
// Unchecked, and safe between threads: `sqlite3_interrupt` may be called from any while the connection is open, which the
// holder ensures.
package struct Interrupter: @unchecked Sendable {
    fileprivate let handle: OpaquePointer

    package func interrupt() {
        sqlite3_interrupt(handle)
    }
}
