internal import CipherErrors
public import CipherPlatform
internal import CipherSystemFiles

extension Connection {
    /// Opens a database, which must be encrypted if a key is passed, and reads its schema.
    ///
    /// The schema is not trusted: functions in it run only if they are innocuous, and SQL that can damage the file is
    /// refused. If the last part of the path is a symbolic link, the file is not opened.
    ///
    /// Otherwise SQLite's defaults apply, including its automatic checkpoint. If several connections write to one file
    /// in WAL mode, in one process or in several, engines before SQLite 3.51.3 can lose acknowledged commits because of
    /// it: a commit may restart the log while another connection checkpoints. Let only one connection write, or set
    /// `PRAGMA wal_autocheckpoint = 0` on all connections and checkpoint while another connection holds `BEGIN
    /// IMMEDIATE`, as a store does.
    /// Source: SQLite, "Write-Ahead Logging", "The WAL-Reset Bug".
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - mode: How to open the file.
    ///   - key: The key; `nil` for a plaintext database.
    ///   - format: The cipher format of the file; by default the newest that the engine writes.
    ///   - collations: The collations that the schema uses.
    ///   - functions: The functions that the schema and the statements call.
    ///   - tokenizers: The tokenizers of the schema's full-text tables.
    ///   - busyTimeout: How long a statement waits while another connection has the file locked.
    /// - Throws: ``DatabaseError``, whose `isCorrupt` is true if the key or the format does not fit, the file is
    ///   damaged, or a connection with a key would only read an empty file; ``StoreError`` with one of these codes:
    ///   `configuration` for a URL that is not a file URL or an impossible format, `notAFile` for a directory, a FIFO or
    ///   a device, `saltMissing` for a readable header and a key without a salt, or `plainSQLite` if SQLCipher is not
    ///   linked.
    public convenience init(
        _ database: URL, mode: Mode = .readWrite, key: CipherKey? = nil, format: CipherSettings = CipherSettings(),
        collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = [],
        busyTimeout: Duration = .seconds(5)
    ) throws {
        let path = try Self.path(of: database)
        // This check comes first, because opening creates the file.
        try key?.checkFits(format, path: path)
        try self.init(path: path, mode: mode, busyTimeout: busyTimeout, through: FileLayer(guarding: path))
        let extensions = SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers)
        try ConnectionProfile.storing.with(key: key, format: format, extensions: extensions).apply(to: self)
        try proveReadable()
    }

    private static func path(of database: URL) throws -> String {
        let path = try database.requiredPath()
        guard path.utf8.last != UInt8(ascii: "/") else {
            throw StoreError(
                .notAFile, path: path, "the path refers to a directory", advice: "pass the path of a database file")
        }
        // SQLite itself refuses a symbolic link.
        if let status = try FileSystem.status(path, followLinks: false), !status.isSymbolicLink {
            try FileSystem.checkRegular(status, path)
        }
        return path
    }

    /// Opens a new, empty in-memory database, for tests and previews; it ends with the connection.
    ///
    /// - Throws: ``DatabaseError``; ``StoreError`` with the code `plainSQLite` if SQLCipher is not linked.
    public convenience init(
        inMemoryWith collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = []
    ) throws {
        try self.init(path: ":memory:", mode: .create)
        let extensions = SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers)
        try ConnectionProfile.storing.with(extensions: extensions).apply(to: self)
    }
}
