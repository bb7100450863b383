internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Complaints, in SQLite's words, about pages that are used twice or not at all.
///
/// From version 3.33 until 3.51, SQLite's check of a whole file leaves these out if a view or a virtual table comes first in
/// its own list of tables, and so does the check of a single table. Source: SQLite 3.46.1, `pragma.c` and
/// `sqlite3BtreeIntegrityCheck`.
enum PageUseComplaints {
    /// - Parameters:
    ///   - connection: A connection to the database, whose transaction keeps its pages as they are.
    ///   - key: The key of an encrypted database.
    static func find(_ connection: Connection, _ path: String, _ key: FileKey?) throws -> [String] {
        func log() throws -> SidecarFile? {
            connection.ignoresLog ? nil : try SidecarFile(DatabasePaths(path).wal)
        }
        // If the transaction uses no page of the log, a writer may restart the log once, and write over its frames.
        let salt = try log().flatMap(LogHeader.init)?.salt
        let found = try find(connection, path, key, in: log())
        return try log().flatMap(LogHeader.init)?.salt == salt ? found : find(connection, path, key, in: log())
    }

    private static func find(
        _ connection: Connection, _ path: String, _ key: FileKey?, in log: SidecarFile?
    ) throws -> [String] {
        let file = try DatabaseFile(path: path)
        let bytes = ReadBytes(size: try file.size()) { try file.fill($1, at: $0) }
        if let log, let versions = try LogHeader(log)?.committedPages(in: log) {
            guard let key else { return try find(in: VersionedPages(bytes, versions, in: log)) }
            return try geometry(key).map { try find(in: VersionedPages(bytes, versions, in: log, $0), key) } ?? []
        }
        guard let key else { return try find(in: FilePages(bytes)) }
        let count = UInt32(clamping: try connection.value(Int64.self, "PRAGMA page_count") ?? 0)
        return try geometry(key).map { try find(in: FilePages(bytes, $0, pageCount: count), key) } ?? []
    }

    private static func geometry(_ key: FileKey) -> PageGeometry? {
        PageGeometry(pageSize: key.settings.pageSize, reserved: key.settings.reservedBytes)
    }

    private static func find(in sealed: some PageSource, _ key: FileKey) throws -> [String] {
        let pages = try EncryptedPages(sealed, key: key.key, settings: key.settings)
        try pages.adoptReservedSize()
        return try find(in: pages)
    }

    private static func find(in pages: (some PageSource)?) throws -> [String] {
        guard let pages, let header = try pages.header() else { return [] }
        let usage = try PageUsage(of: pages, header: header)
        // A report shows fewer; the last one tells that there are others.
        let most = Verification.limit + 1
        return usage.repeatedUses.prefix(most).map { page, use in
            "\(use.root.map { "Tree \($0)" } ?? "Freelist"): 2nd reference to page \(page)"
        } + usage.lostPages.prefix(most).map { "Page \($0): never used" }
    }
}

extension Connection {
    /// Returns whether SQLite's check of the whole file may leave out what ``PageUseComplaints`` finds.
    func mayLeaveOutPageUses() throws -> Bool {
        guard Engine.current.leavesOutPageUses else { return false }
        // SQLite goes by the definition, whatever the type says.
        return try exists(
            """
            SELECT 1 FROM sqlite_master WHERE sql NOT LIKE 'CREATE TABLE %' AND sql NOT LIKE 'CREATE INDEX %'
            AND sql NOT LIKE 'CREATE UNIQUE INDEX %' AND sql NOT LIKE 'CREATE TRIGGER %'
            """)
    }
}
