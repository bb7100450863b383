#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Why a database could not be opened, upgraded or checked.
///
/// Says what happened, to which file, and what to do next. Never contains a key or a stored value.
public struct StoreError: Error, Sendable {
    /// The kind of failure, for programs.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no such file.
        case missingFile
        /// There is a file, and it is not a database: a directory, a device.
        case notAFile
        /// Encrypted with another key, or damaged: only the key tells.
        case keyDoesNotFit
        /// The file is encrypted and keeps a readable header, so its salt must come with the key.
        case saltMissing
        /// The key provider has no key, or failed.
        case keyUnavailable
        /// The key store is locked: whether it has the key is not known.
        case keyStoreLocked
        /// The key store is not there, refused, or did not answer in time: whether it has the key is not known.
        case keyStoreUnavailable
        /// The key is empty or has no valid form.
        case keyMalformed
        /// The key file can be read by others.
        case keyFileInsecure
        /// The provider gave another key when it was asked again.
        case keyChanged
        /// The new key is the old one.
        case keyUnchanged
        /// A plaintext file that claims a version at which the app encrypts: a swapped file or a restored backup.
        case unexpectedPlaintext
        /// The file is encrypted and the configuration says that encryption is off.
        case encryptionDisabled
        /// The file has a newer version than the app.
        case downgrade
        /// A `-wal` or `-journal` of another copy lies beside the file and would overwrite it.
        case staleSidecar
        /// A journal must be rolled back first, and this cannot be done here.
        case needsRecovery
        /// Another process or another part of this process uses the file, or another upgrade is running.
        case busy
        /// No room for the copy.
        case noSpace
        /// The file or its folder may not be read, written or given its owner.
        case permission
        /// The legacy file is damaged.
        case corrupt
        /// The schema uses collations that were not registered.
        case missingCollation
        /// The schema or a step of a migration calls a function that was not registered, and rows or index entries are to be
        /// computed with it.
        case missingFunction
        /// A full-text table names a tokenizer that was not registered, and its text is to be read or written.
        case missingTokenizer
        /// The schema needs a newer engine.
        case engineTooOld
        /// Plain SQLite is linked instead of SQLCipher.
        case plainSQLite
        /// The copy was not equal to the original, and was discarded.
        case proofFailed
        /// A file of another program has a name that the upgrade needs, or the name would be too long.
        case nameTaken
        /// The upgrade did not end, several times in a row.
        case repeatedFailure
        /// The store was closed.
        case closed
        /// The store is suspended and holds no connection to the file.
        case suspended
        /// The database's name refers to a different file than the one that the store opened.
        case replaced
        /// The store was opened for reading only.
        case readOnly
        /// The file must be encrypted or migrated before it can be read, and was to be opened for reading only.
        case upgradeNeeded
        /// The store was called in an unsupported way, such as inside its own closure.
        case misuse
        /// The caller cancelled.
        case cancelled
        /// The configuration or a step of it is wrong, whatever the database is; the detail names the place.
        case configuration
        /// The recorded version cannot be read.
        case recordedVersion
        /// The wanted schema cannot be reached from what is in this database.
        case migration
        /// The schema migration would lose tables, columns or values, and the configuration refuses that.
        case destructiveChanges
        /// The system or SQLite failed at a read, a write, a sync or a rename.
        case inputOutput
    }

    /// The kind of failure.
    public let code: Code
    /// The file that it happened to; a byte of its name that is not UTF-8 is the scalar U+10FF00 plus that byte.
    public private(set) var path: String?
    /// What happened.
    public let detail: String
    private let nextStep: String
    /// What is left of what was begun, where the error tells.
    package var change: Change?
    /// What to do next.
    public var advice: String { [nextStep, change?.rawValue ?? ""].filter { !$0.isEmpty }.joined(separator: "; ") }
    /// SQLite's own report, where there is one.
    public let underlying: DatabaseError?
    /// The stage in which an encryption upgrade failed; `nil` if it had not begun, or had ended.
    public package(set) var stage: UpgradeStage?
    /// The wall time of that stage and of those before it, in seconds.
    public package(set) var stageSeconds: [String: Double] = [:]

    /// Describes a failure.
    public init(
        _ code: Code, path: String? = nil, _ detail: String, advice: String = "", underlying: DatabaseError? = nil
    ) {
        self.init(code, path: path, detail, advice: advice, changed: nil, underlying: underlying)
    }

    /// Describes a failure, and what it left.
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
    /// The same of another file.
    package func at(_ path: String?) -> StoreError {
        var error = self
        error.path = path
        return error
    }

    /// What went wrong in a part of something that ended well: the advice is for a caller who got nothing.
    package static func reason(_ error: any Error) -> String {
        (error as? StoreError)?.statement ?? "\(error)"
    }

    private var statement: String {
        var text = path.map { "\(SystemPath.printable($0)): " } ?? ""
        text += detail
        if let underlying { text += " (\(underlying.message), SQLite code \(underlying.extendedCode))" }
        return text
    }

    /// What is left of what was begun, as the advice says at its end.
    package enum Change: String, Sendable {
        case nothing = "nothing was changed"
        /// At most a journal was rolled back or a log merged into the file, as SQLite does at any opening.
        case noRow = "no row was changed"
        case nothingRemoved = "nothing was removed"
        case mergedLog = "the -wal beside the file has been merged into it"
        case lostDatabase = "the database is gone; the file in its place belongs to that program"
    }

    /// The caller ended an upgrade before its swap.
    package static func cancelled(_ path: String) -> StoreError {
        StoreError(.cancelled, path: path, "the upgrade was cancelled", changed: .nothing)
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
