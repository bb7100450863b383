internal import CCipherEngine

/// The versions and capabilities of the linked SQLCipher library, as the library itself reports them.
public struct Engine: Sendable {
    /// The SQLCipher version, such as `4.6.1 community`; empty if plain SQLite was linked by mistake.
    public let cipherVersion: String
    /// The SQLite version, such as `3.46.1`.
    public let sqliteVersion: String
    /// The SQLite version as a number, such as 3046001.
    package let sqliteVersionNumber: Int
    /// Whether SQL text may contain a byte order mark (U+FEFF) wherever it may contain white space; to older engines,
    /// the mark is a part of a name.
    package let skipsByteOrderMarks: Bool

    /// The engine of this process.
    public static let current = Engine()

    /// SQLCipher's major version; 0 for plain SQLite.
    package var cipherMajor: Int { Int(cipherVersion.prefix { $0.isNumber }) ?? 0 }
    /// The newest file format that the engine writes.
    public var defaultCompatibility: Int { CipherFormat.numbered(max(3, cipherMajor)).number }
    package var hasCompatibilityPragma: Bool { cipherMajor >= 4 }
    package var hasCipherIntegrityCheck: Bool { cipherMajor >= 4 }
    /// Whether `PRAGMA table_xinfo` exists; in older engines, no ordinary table can have a column that `table_info`
    /// omits.
    package var listsHiddenColumns: Bool { sqliteVersionNumber >= 3_026_000 }
    package var hasGeneratedColumns: Bool { sqliteVersionNumber >= 3_031_000 }
    /// Whether a log can be read without its index.
    package var readsLogWithoutIndex: Bool { sqliteVersionNumber >= 3_022_000 }
    /// Whether SQLite reports a table of which a query reads no column; engines before SQLite 3.19 do not.
    package var tellsOfCountedTables: Bool { sqliteVersionNumber >= 3_019_000 }
    /// Whether `PRAGMA integrity_check` is certain to check the order of the rows of WITHOUT ROWID tables.
    package var checksKeyOrder: Bool { sqliteVersionNumber >= 3_041_000 }
    package var hasUpsert: Bool { sqliteVersionNumber >= 3_024_000 }
    /// Whether a single table can be checked.
    package var checksTables: Bool { sqliteVersionNumber >= 3_033_000 }
    /// Whether a view or a virtual table can keep the check of the whole file from looking for pages that are used twice
    /// or never.
    package var leavesOutPageUses: Bool { checksTables && sqliteVersionNumber < 3_051_000 }
    package var hasReturning: Bool { sqliteVersionNumber >= 3_035_000 }
    package var hasStrictTables: Bool { sqliteVersionNumber >= 3_037_000 }
    /// Whether `ALTER TABLE ADD COLUMN` enforces the column's CHECK for the existing rows.
    package var enforcesAddedChecks: Bool { sqliteVersionNumber >= 3_037_000 }

    /// Whether a checkpoint can lose the commits of another writer to a file in WAL mode.
    ///
    /// A store checkpoints in a way that avoids this fault; another program that writes to the same file must set
    /// `PRAGMA wal_autocheckpoint = 0`. SQLite 3.51.3 contains the fix, as does SQLCipher since 4.14.
    /// Source: SQLite, "Write-Ahead Logging", "The WAL-Reset Bug".
    public var hasWALResetFault: Bool { (3_007_000...3_051_002).contains(sqliteVersionNumber) }

    /// The known faults of the linked SQLite that the content of an untrusted file can reach.
    package var faults: [EngineFault] { EngineFault.all(in: sqliteVersionNumber) }

    private init() {
        // The memory statistics take a process-wide lock at every allocation, and the verification uses two threads. If
        // the app already uses SQLite, the statistics stay on.
        _ = cs_config_no_memory_statistics()
        sqliteVersion = String(cString: sqlite3_libversion())
        sqliteVersionNumber = Int(sqlite3_libversion_number())
        var version = ""
        var skipsMarks = false
        var handle: OpaquePointer?
        if sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK {
            var statement: OpaquePointer?
            sqlite3_prepare_v2(handle, "PRAGMA cipher_version", -1, &statement, nil)
            if sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0) {
                version = String(cString: text)
            }
            sqlite3_finalize(statement)
            skipsMarks = sqlite3_prepare_v2(handle, "SELECT \u{feff}1", -1, &statement, nil) == SQLITE_OK
            sqlite3_finalize(statement)
        }
        sqlite3_close(handle)
        cipherVersion = version
        skipsByteOrderMarks = skipsMarks
    }
}
