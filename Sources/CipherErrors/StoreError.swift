public import CipherPlatform

/// An error from opening, upgrading or checking a database.
///
/// States what happened, to which file, and what to do next. Never contains a key or a stored value.
public struct StoreError: Error, Sendable {
    /// The kind of failure, for programs.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no such file.
        case missingFile
        /// The path does not refer to a regular file but, for example, to a directory or a device.
        case notAFile
        /// The file is encrypted with another key or is damaged; only the right key can show which.
        case keyDoesNotFit
        /// The file is encrypted and has a readable header, so its salt must be passed with the key.
        case saltMissing
        /// The key provider has no key, or failed.
        case keyUnavailable
        /// The key store is locked, so it is unknown whether it has the key.
        case keyStoreLocked
        /// The key store is absent, denied access, or did not respond in time, so it is unknown whether it has the key.
        case keyStoreUnavailable
        /// The key is empty or malformed.
        case keyMalformed
        /// The key file can be read or written by other users, or belongs to another user.
        case keyFileInsecure
        /// The provider returned a different key when it was asked again.
        case keyChanged
        /// The new key is the same as the old one.
        case keyUnchanged
        /// A plaintext file records a version at which the app encrypts, so it was swapped in or restored from a
        /// backup.
        case unexpectedPlaintext
        /// The file is encrypted, but encryption is off in the configuration.
        case encryptionDisabled
        /// The file has a newer version than the app.
        case downgrade
        /// A `-wal` or `-journal` that belongs to another copy is beside the file; SQLite would apply it to the file.
        case staleSidecar
        /// A journal must be rolled back first, which is not possible here.
        case needsRecovery
        /// Another process or another part of this process uses the file, or another upgrade is running.
        case busy
        /// There is not enough disk space.
        case noSpace
        /// The process lacks permission to read or write the file or its folder, or to set the file's owner.
        case permission
        /// The file is damaged.
        case corrupt
        /// The schema uses collations that are not registered.
        case missingCollation
        /// The schema or a migration step calls a function that is not registered, and rows or index entries must be
        /// computed with it.
        case missingFunction
        /// A full-text table uses a tokenizer that is not registered, and its text must be read or written.
        case missingTokenizer
        /// The schema requires a newer SQLite.
        case engineTooOld
        /// Plain SQLite is linked instead of SQLCipher.
        case plainSQLite
        /// The copy differed from the original and was discarded.
        case proofFailed
        /// A file of another program has a name that the upgrade needs, or such a name would be too long.
        case nameTaken
        /// The upgrade failed to finish several times in a row.
        case repeatedFailure
        /// The store was closed.
        case closed
        /// The store is suspended and holds no connection to the file.
        case suspended
        /// The database's path now refers to a different file than the one that the store opened.
        case replaced
        /// The store was opened read-only.
        case readOnly
        /// The file must be encrypted or migrated before it can be read, but it was opened read-only.
        case upgradeNeeded
        /// The store was called in an unsupported way, such as inside its own closure.
        case misuse
        /// The caller canceled.
        case cancelled
        /// The configuration or one of its steps is wrong, whatever the database contains; the detail names the
        /// location.
        case configuration
        /// The recorded version cannot be read.
        case recordedVersion
        /// The target schema cannot be reached from what this database contains.
        case migration
        /// The schema migration would lose tables, columns or values, which the configuration does not allow.
        case destructiveChanges
        /// The system or SQLite could not read, write, sync or rename a file.
        case inputOutput
    }

    /// The kind of failure.
    public let code: Code
    /// The path of the affected file; a byte of its name that is not valid UTF-8 appears as the scalar U+10FF00 plus
    /// that byte.
    public private(set) var path: String?
    /// What happened.
    public let detail: String
    private let nextStep: String
    /// What the failed operation left behind, if known.
    package var change: Change?
    /// What to do next.
    public var advice: String { [nextStep, change?.rawValue ?? ""].filter { !$0.isEmpty }.joined(separator: "; ") }
    /// SQLite's own error; `nil` if SQLite did not report the failure.
    public let underlying: DatabaseError?
    /// The stage in which an encryption upgrade failed; `nil` if it had not begun, or had ended.
    public package(set) var stage: UpgradeStage?
    /// The wall-clock time of that stage and of each earlier one, in seconds.
    public package(set) var stageSeconds: [String: Double] = [:]

    /// Creates an error.
    public init(
        _ code: Code, path: String? = nil, _ detail: String, advice: String = "", underlying: DatabaseError? = nil
    ) {
        self.init(code, path: path, detail, advice: advice, changed: nil, underlying: underlying)
    }

    /// Creates an error that also states what the operation left behind.
    package init(
        _ code: Code, path: String? = nil, _ detail: String, advice: String = "", changed: Change?,
        underlying: DatabaseError? = nil
    ) {
        self.code = code
        self.path = path
        self.detail = detail
        nextStep = advice
        change = changed
        self.underlying = underlying
    }
}

extension StoreError {
    /// Returns this error with another path.
    package func at(_ path: String?) -> StoreError {
        var error = self
        error.path = path
        return error
    }

    /// Returns the error's text without its advice, for a failed part of an operation that succeeded as a whole: the
    /// advice is for a caller whose whole operation failed.
    package static func reason(_ error: any Error) -> String {
        (error as? StoreError)?.statement ?? "\(error)"
    }

    private var statement: String {
        var text = path.map { "\(SystemPath.printable($0)): " } ?? ""
        text += detail
        if let underlying { text += " (\(underlying.message), SQLite code \(underlying.extendedCode))" }
        return text
    }

    /// What the failed operation left behind, as stated at the end of the advice.
    package enum Change: String, Sendable {
        case nothing = "nothing was changed"
        /// At most, a journal was rolled back or a log was merged into the file, as SQLite does whenever it opens a
        /// database.
        case noRow = "no rows were changed"
        case nothingRemoved = "nothing was removed"
        case mergedLog = "the database's -wal has been merged into the file"
        case rolledBack = "the database's -journal has been rolled back"
        case lostDatabase = "the database is lost; another program's file has replaced it"
    }

    /// Creates the error for an operation that the caller canceled before it changed the database.
    package static func cancelled(_ path: String) -> StoreError {
        StoreError(.cancelled, path: path, "the operation was canceled", changed: .nothing)
    }
}

extension StoreError: CustomStringConvertible, LocalizedError {
    /// The file, what happened, and what to do next.
    public var description: String {
        statement + (advice.isEmpty ? "" : "; \(advice)")
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}
