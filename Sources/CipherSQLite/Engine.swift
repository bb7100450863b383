internal import CCipherEngine

/// What the linked SQLCipher library is and can do, asked from the library itself.
public struct Engine: Sendable {
    /// The SQLCipher version, such as `4.6.1 community`; empty when plain SQLite was linked by mistake.
    public let cipherVersion: String
    /// The SQLite version, such as `3.46.1`.
    public let sqliteVersion: String
    /// The SQLite version as a number, such as 3046001.
    package let sqliteVersionNumber: Int

    /// The engine of this process.
    public static let current = Engine()

    /// SQLCipher's major version, 0 for plain SQLite.
    package var cipherMajor: Int { Int(cipherVersion.prefix { $0.isNumber }) ?? 0 }
    /// The newest file format that the engine writes.
    public var defaultCompatibility: Int { cipherMajor >= 4 ? 4 : 3 }
    package var hasCompatibilityPragma: Bool { cipherMajor >= 4 }
    package var hasCipherIntegrityCheck: Bool { cipherMajor >= 4 }
    /// Whether `PRAGMA table_xinfo` is known; before it no ordinary table could have a column that `table_info` leaves out.
    package var listsHiddenColumns: Bool { sqliteVersionNumber >= 3_026_000 }
    package var hasGeneratedColumns: Bool { sqliteVersionNumber >= 3_031_000 }
    /// Whether a log can be read without its index.
    package var readsLogWithoutIndex: Bool { sqliteVersionNumber >= 3_022_000 }
    /// Whether SQLite tells of a table of which a query reads no column; the engines before SQLite 3.19 do not.
    package var tellsOfCountedTables: Bool { sqliteVersionNumber >= 3_026_000 }
    package var hasUpsert: Bool { sqliteVersionNumber >= 3_024_000 }
    /// Whether one table alone can be checked.
    package var checksTables: Bool { sqliteVersionNumber >= 3_033_000 }
    package var hasReturning: Bool { sqliteVersionNumber >= 3_035_000 }
    package var hasStrictTables: Bool { sqliteVersionNumber >= 3_037_000 }

    /// Whether a checkpoint can lose commits of another writer of a file in WAL mode.
    ///
    /// A store checkpoints in a way that avoids it; another program that writes the same file must set
    /// `PRAGMA wal_autocheckpoint = 0`. SQLite 3.51.3 has the correction, and so does SQLCipher from 4.14 on.
    /// Source: SQLite, "Write-Ahead Logging", "The WAL-Reset Bug".
    public var hasWALResetFault: Bool { (3_007_000...3_051_002).contains(sqliteVersionNumber) }

    private init() {
        // The statistics put a lock of the whole process around every allocation, and the proof works on two threads. An
        // app that has SQLite in use by now keeps them.
        _ = cs_config_no_memory_statistics()
        sqliteVersion = String(cString: sqlite3_libversion())
        sqliteVersionNumber = Int(sqlite3_libversion_number())
        var version = ""
        var handle: OpaquePointer?
        if sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK {
            var statement: OpaquePointer?
            sqlite3_prepare_v2(handle, "PRAGMA cipher_version", -1, &statement, nil)
            if sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0) {
                version = String(cString: text)
            }
            sqlite3_finalize(statement)
        }
        sqlite3_close(handle)
        cipherVersion = version
    }
}
