internal import CSQLCipher

/// A failure that SQLite or SQLCipher reported.
///
/// Holds the SQL text, never a bound value and never a key.
public struct DatabaseError: Error, Sendable, Equatable {
    /// The extended result code, such as 2067 for `SQLITE_CONSTRAINT_UNIQUE`.
    ///
    /// Source: SQLite, "Result and Error Codes".
    public let extendedCode: Int32
    /// SQLite's own message.
    public let message: String
    /// The SQL that failed, where there was one.
    public let sql: String?
    /// The database file, where there is one.
    public let path: String?

    /// The primary result code: the low eight bits of the extended one.
    public var code: Int32 { extendedCode & 0xff }

    /// Describes a failure.
    package init(extendedCode: Int32, message: String, sql: String? = nil, path: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message
        self.sql = sql
        self.path = path
    }

    package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
    package var isFull: Bool { code == SQLITE_FULL }
    package var isNotADatabase: Bool { code == SQLITE_NOTADB }
    /// Whether SQLite has no words for what failed.
    ///
    /// So SQLCipher ends the reading of a first page that is not authentic, where its header is readable.
    package var isUnexplained: Bool { code == SQLITE_ERROR && message == String(cString: sqlite3_errstr(SQLITE_ERROR)) }
    package var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    package var isTooBig: Bool { code == SQLITE_TOOBIG }
    package var isInputOutput: Bool { code == SQLITE_IOERR }
    package var isInterrupted: Bool { code == SQLITE_INTERRUPT }
    package var isPermission: Bool { code == SQLITE_PERM || code == SQLITE_READONLY || code == SQLITE_AUTH }
    package var isConstraint: Bool { code == SQLITE_CONSTRAINT }
    package var isCannotOpen: Bool { code == SQLITE_CANTOPEN }
    package var isOutOfMemory: Bool { code == SQLITE_NOMEM }
    /// The index of a log cannot be read without writing it.
    package var needsIndex: Bool {
        extendedCode == SQLITE_READONLY | (1 << 8) || extendedCode == SQLITE_READONLY | (5 << 8)
    }
    /// A read-only connection met a journal that must be rolled back first.
    package var needsRecovery: Bool { extendedCode == SQLITE_READONLY | (3 << 8) }

    package static let generic = SQLITE_ERROR
    package static let misuse = SQLITE_MISUSE
    package static let mismatch = SQLITE_MISMATCH
    /// `SQLITE_ABORT_ROLLBACK`.
    package static let rolledBack = SQLITE_ABORT | (2 << 8)
    package static let corrupt = SQLITE_CORRUPT
    package static let inputOutput = SQLITE_IOERR
}

extension DatabaseError: CustomStringConvertible {
    /// The message, its code, the file and the SQL.
    public var description: String {
        var text = "\(message) (SQLite code \(extendedCode))"
        if let path { text += " in \(SystemPath.printable(path))" }
        if let sql { text += ", running: \(sql)" }
        return text
    }
}
