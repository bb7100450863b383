public import CipherPlatform

/// A failure that SQLite or SQLCipher reported.
///
/// Contains the SQL text, but never a bound value or a key.
public struct DatabaseError: Error, Sendable, Equatable {
    /// The extended result code, such as 2067 for `SQLITE_CONSTRAINT_UNIQUE`.
    ///
    /// Source: SQLite, "Result and Error Codes".
    public let extendedCode: Int32
    /// SQLite's own message.
    public let message: String
    /// The SQL that failed; `nil` if there is none.
    public let sql: String?
    /// The path of the database file; `nil` if there is none.
    public let path: String?
    /// The system's error number, if the failure is one to open, read or write a file; otherwise 0.
    package let systemCode: Int32

    /// The primary result code: the low eight bits of the extended one.
    public var code: Int32 { extendedCode & 0xff }

    /// Creates an error from SQLite's result code and message.
    package init(
        extendedCode: Int32, message: String, sql: String? = nil, path: String? = nil, systemCode: Int32 = 0
    ) {
        self.extendedCode = extendedCode
        self.message = message
        self.sql = sql
        self.path = path
        self.systemCode = systemCode
    }

    /// Whether a duplicate primary key, rowid or unique value was rejected.
    public var isUniqueViolation: Bool { [Self.primaryKey, Self.unique, Self.rowID].contains(extendedCode) }
    /// Whether a foreign key constraint failed.
    public var isForeignKeyViolation: Bool { extendedCode == ResultCode.constraint | (3 << 8) }
    /// Whether a NOT NULL constraint failed.
    public var isNotNullViolation: Bool { extendedCode == ResultCode.constraint | (5 << 8) }
    /// Whether a CHECK constraint failed.
    public var isCheckViolation: Bool { extendedCode == ResultCode.constraint | (1 << 8) }
    /// Whether any constraint failed.
    public var isConstraintViolation: Bool { code == ResultCode.constraint }
    /// Whether another connection held a lock for longer than the busy timeout.
    public var isBusy: Bool { code == ResultCode.busy || code == ResultCode.locked }
    /// Whether the disk is full, or has no room for the index of a write-ahead log.
    ///
    /// Source: SQLite, "Result and Error Codes", `SQLITE_FULL` and `SQLITE_IOERR_SHMSIZE`.
    public var isFull: Bool { code == ResultCode.full || extendedCode == ResultCode.inputOutput | (19 << 8) }
    package var isNotADatabase: Bool { code == ResultCode.notADatabase }
    /// Whether the file is damaged, or is not a database under the key that was used.
    public var isCorrupt: Bool { code == ResultCode.corrupt || code == ResultCode.notADatabase }
    /// Whether a virtual table's module found its own tables damaged; no page need be damaged.
    package var isOfModule: Bool { extendedCode == ResultCode.corrupt | (1 << 8) }
    /// Whether an operation took more steps than an undamaged file should need.
    package var isBeyondSteps: Bool { isCorrupt && message == Self.beyondSteps }
    /// Whether the schema's expressions took more processor time than they may take in a file of this size.
    package var isBeyondTime: Bool { isTooBig && message.hasPrefix(Self.beyondTime) }
    /// What to do next if the file is damaged; `nil` for any other failure.
    public var advice: String? { code == ResultCode.corrupt ? StoreError.damageAdvice : nil }
    /// Whether a text or blob exceeds SQLite's size limit.
    public var isTooBig: Bool { code == ResultCode.tooBig }
    /// Whether the system failed to read or write the file.
    public var isInputOutput: Bool { code == ResultCode.inputOutput }
    /// Whether the statement was interrupted by a cancellation.
    public var isInterrupted: Bool { code == ResultCode.interrupted }
    /// Whether access was denied: the file, connection or closure is read-only, or the statement is not authorized.
    public var isPermission: Bool {
        code == ResultCode.permission || code == ResultCode.readOnly || code == ResultCode.authorization
    }
    /// Whether the open file was renamed or removed, so that its path now refers to another file or to none.
    package var isMoved: Bool { extendedCode == ResultCode.readOnly | (4 << 8) }
    package var isCannotOpen: Bool { code == ResultCode.cannotOpen }
    package var isOutOfMemory: Bool { code == ResultCode.noMemory }
    /// Whether the index of a write-ahead log cannot be read without writing to it.
    package var needsIndex: Bool {
        extendedCode == ResultCode.readOnly | (1 << 8) || extendedCode == ResultCode.readOnly | (5 << 8)
    }
    /// Whether a read-only connection found a journal that must be rolled back first.
    package var needsRecovery: Bool { extendedCode == ResultCode.readOnly | (3 << 8) }

    private static let primaryKey = ResultCode.constraint | (6 << 8)
    private static let unique = ResultCode.constraint | (8 << 8)
    private static let rowID = ResultCode.constraint | (10 << 8)

    package static let beyondSteps =
        "the operation exceeded its step limit, which can happen if pages of the file refer to each other in a cycle"

    package static let beyondTime =
        "the expressions in the schema take more processor time than is allowed for a file of this size"

    package static let generic = ResultCode.error
    package static let misuse = ResultCode.misuse
    package static let unauthorized = ResultCode.authorization
    package static let mismatch = ResultCode.mismatch
    /// `SQLITE_ABORT_ROLLBACK`.
    package static let rolledBack = ResultCode.abort | (2 << 8)
    package static let corrupt = ResultCode.corrupt
    package static let inputOutput = ResultCode.inputOutput
}

extension DatabaseError: CustomStringConvertible, LocalizedError {
    /// The message, its code, the file and the SQL.
    public var description: String {
        var text = "\(message) (SQLite code \(extendedCode))"
        if let path { text += " in \(SystemPath.printable(path))" }
        if let sql { text += ", running: \(sql)" }
        if let advice { text += "; \(advice)" }
        return text
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}

/// SQLite's primary result codes, which never change.
///
/// Source: SQLite, "Result and Error Codes".
private enum ResultCode {
    static let error: Int32 = 1
    static let permission: Int32 = 3
    static let abort: Int32 = 4
    static let busy: Int32 = 5
    static let locked: Int32 = 6
    static let noMemory: Int32 = 7
    static let readOnly: Int32 = 8
    static let interrupted: Int32 = 9
    static let inputOutput: Int32 = 10
    static let corrupt: Int32 = 11
    static let full: Int32 = 13
    static let cannotOpen: Int32 = 14
    static let tooBig: Int32 = 18
    static let constraint: Int32 = 19
    static let mismatch: Int32 = 20
    static let misuse: Int32 = 21
    static let authorization: Int32 = 23
    static let notADatabase: Int32 = 26
}
