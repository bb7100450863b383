internal import CipherErrors
internal import CipherSystemFiles

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension Connection {
    /// Opens a database, encrypted where a key is given, and reads its schema.
    ///
    /// A schema is not trusted: functions in it that are not innocuous do not run, and SQL that can damage the file is
    /// refused. If the last part of the path is a symbolic link, the file is not opened.
    ///
    /// SQLite's defaults hold for the rest, its automatic checkpoint included. If several connections write one file in
    /// WAL mode, in one process or in several, engines before SQLite 3.51.3 can lose acknowledged commits by it: a
    /// commit may begin the log anew while another connection checkpoints. Have one connection write, or set `PRAGMA
    /// wal_autocheckpoint = 0` on all and checkpoint while another connection holds `BEGIN IMMEDIATE`, as a store does.
    /// Source: SQLite, "Write-Ahead Logging", "The WAL-Reset Bug".
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - mode: What may be done with it.
    ///   - key: `nil` for a plaintext database.
    ///   - format: The cipher format of the file; by default the newest that the engine writes.
    ///   - collations: Those that the schema uses.
    ///   - functions: Those that the schema and the statements call.
    ///   - tokenizers: Those of the schema's full-text tables.
    ///   - busyTimeout: How long a statement waits while another connection has the file locked.
    /// - Throws: ``DatabaseError``, of which `isCorrupt` is true where the key or the format does not fit or the file
    ///   is damaged; ``StoreError``, with `configuration` for a URL that is not that of a file and for a format that
    ///   cannot be, with `notAFile` for a directory, a FIFO or a device, with `saltMissing` for a readable header and a
    ///   key without a salt, and with `plainSQLite` if SQLCipher is not linked.
    public convenience init(
        _ database: URL, mode: Mode = .readWrite, key: CipherKey? = nil, format: CipherSettings = CipherSettings(),
        collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = [],
        busyTimeout: Duration = .seconds(5)
    ) throws {
        let path = try Self.path(of: database)
        // Opening makes the file.
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
                .notAFile, path: path, "this is the name of a directory", advice: "give the path of a database file")
        }
        // SQLite refuses a link.
        if let status = try FileSystem.status(path, followLinks: false), !status.isSymbolicLink {
            try FileSystem.checkRegular(status, path)
        }
        return path
    }

    /// Opens a new, empty database in memory, for tests and previews; it ends with the connection.
    ///
    /// - Throws: ``DatabaseError``; ``StoreError`` with `plainSQLite` if SQLCipher is not linked.
    public convenience init(
        inMemoryWith collations: [Collation] = [], functions: [SQLFunction] = [], tokenizers: [Tokenizer] = []
    ) throws {
        try self.init(path: ":memory:", mode: .create)
        let extensions = SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers)
        try ConnectionProfile.storing.with(extensions: extensions).apply(to: self)
    }
}
