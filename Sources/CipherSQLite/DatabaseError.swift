internal import CCipherEngine

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

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

    /// Whether a primary key, a rowid or values that must be unique are there already.
    public var isUniqueViolation: Bool { [Self.primaryKey, Self.unique, Self.rowID].contains(extendedCode) }
    /// Whether a foreign key would refer to nothing.
    public var isForeignKeyViolation: Bool { extendedCode == SQLITE_CONSTRAINT | (3 << 8) }
    /// Whether NULL would stand where the schema forbids it.
    public var isNotNullViolation: Bool { extendedCode == SQLITE_CONSTRAINT | (5 << 8) }
    /// Whether a row would break a CHECK.
    public var isCheckViolation: Bool { extendedCode == SQLITE_CONSTRAINT | (1 << 8) }
    /// Whether any constraint would be broken.
    public var isConstraintViolation: Bool { code == SQLITE_CONSTRAINT }
    /// Whether another connection's lock was in the way, longer than is waited.
    public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
    /// Whether the disk is full.
    public var isFull: Bool { code == SQLITE_FULL }
    package var isNotADatabase: Bool { code == SQLITE_NOTADB }
    /// Whether SQLite has no words for what failed.
    ///
    /// So SQLCipher ends the reading of a first page that is not authentic, where its header is readable.
    package var isUnexplained: Bool { code == SQLITE_ERROR && message == String(cString: sqlite3_errstr(SQLITE_ERROR)) }
    /// Whether the file is damaged, or no database under its key.
    public var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    /// Whether a text or blob is longer than SQLite takes.
    public var isTooBig: Bool { code == SQLITE_TOOBIG }
    /// Whether the system failed at reading or writing the file.
    public var isInputOutput: Bool { code == SQLITE_IOERR }
    /// Whether the statement was ended by a cancellation.
    public var isInterrupted: Bool { code == SQLITE_INTERRUPT }
    /// Whether the file, the connection or the closure may only be read, or may not run this.
    public var isPermission: Bool { code == SQLITE_PERM || code == SQLITE_READONLY || code == SQLITE_AUTH }
    /// Another file has the name of the one that is open, or none.
    package var isMoved: Bool { extendedCode == SQLITE_READONLY | (4 << 8) }
    package var isCannotOpen: Bool { code == SQLITE_CANTOPEN }
    package var isOutOfMemory: Bool { code == SQLITE_NOMEM }
    /// The index of a log cannot be read without writing it.
    package var needsIndex: Bool {
        extendedCode == SQLITE_READONLY | (1 << 8) || extendedCode == SQLITE_READONLY | (5 << 8)
    }
    /// A read-only connection met a journal that must be rolled back first.
    package var needsRecovery: Bool { extendedCode == SQLITE_READONLY | (3 << 8) }

    private static let primaryKey = SQLITE_CONSTRAINT | (6 << 8)
    private static let unique = SQLITE_CONSTRAINT | (8 << 8)
    private static let rowID = SQLITE_CONSTRAINT | (10 << 8)

    package static let generic = SQLITE_ERROR
    package static let misuse = SQLITE_MISUSE
    package static let unauthorized = SQLITE_AUTH
    package static let mismatch = SQLITE_MISMATCH
    /// `SQLITE_ABORT_ROLLBACK`.
    package static let rolledBack = SQLITE_ABORT | (2 << 8)
    package static let corrupt = SQLITE_CORRUPT
    package static let inputOutput = SQLITE_IOERR
}

extension DatabaseError: CustomStringConvertible, LocalizedError {
    /// The message, its code, the file and the SQL.
    public var description: String {
        var text = "\(message) (SQLite code \(extendedCode))"
        if let path { text += " in \(SystemPath.printable(path))" }
        if let sql { text += ", running: \(sql)" }
        return text
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}
