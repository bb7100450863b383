internal import CipherDatabaseConversion
public import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration

/// One launch in numbers and names, for the statistics of a staged roll-out: made from what opening a store returned, or
/// from what it threw.
///
/// Contains no path, no message, no name of a table and nothing else of the database.
public struct LaunchReport: Sendable, Codable, Equatable {
    /// How the launch ended.
    public enum Outcome: String, Sendable, Codable {
        /// A new database was created.
        case created
        /// A legacy file was encrypted.
        case encrypted
        /// An encrypted file was opened.
        case opened
        /// An encrypted file was given another key or cipher format.
        case rekeyed
        /// A damaged file was recovered.
        case recovered
        /// Encryption is off now: the file was decrypted.
        case decrypted
        /// A plaintext file was opened.
        case openedPlaintext
        /// The same, after a shadow proof of its encryption.
        case shadow
        /// The same, after a shadow proof that failed.
        case shadowFailed
        /// The store could not be opened.
        case failed
    }

    /// How the launch ended.
    public var outcome: Outcome
    /// The ``StoreError/Code`` of the failure; `database`, `key` or `other` for errors of other types.
    public var errorCode: String?
    /// SQLite's own code of the failure, where SQLite reported it.
    public var sqliteCode: Int?
    /// The stage of the upgrade that failed.
    public var stage: UpgradeStage?
    /// How many tables were copied and compared.
    public var tables: Int?
    /// How many rows were copied and compared.
    public var rows: Int64?
    /// The size of the file before an upgrade, in bytes, with its log.
    public var bytesBefore: Int64?
    /// The size of the file after it, in bytes; of a shadow proof, the size that it would have.
    public var bytesAfter: Int64?
    /// The wall time of the upgrade in seconds.
    public var seconds: Double?
    /// The wall time of each of its stages in seconds; of a failed one, of the stages that were begun.
    public var stageSeconds: [String: Double] = [:]
    /// The schema's version before; `nil` if none was recorded.
    public var versionBefore: String?
    /// The schema's version after.
    public var versionAfter: String?
    /// How many warnings the whole report holds.
    public var warnings = 0
    /// The version of SQLCipher.
    public var cipherVersion: String
    /// The version of SQLite in it.
    public var sqliteVersion: String

    /// The report of a launch that ended well.
    public init(_ report: OpenReport) {
        let outcome = Outcome(report.outcome)
        self = report.shadow ?? LaunchReport(outcome, report.encryption)
        versionBefore = report.migration.from?.description
        versionAfter = report.migration.to.description
        warnings = report.warnings.count
    }

    /// The report of a launch that failed, from what opening the store threw.
    public init(_ error: any Error) {
        self.init(.failed, error)
    }

    /// The report of a shadow proof.
    init(shadow: EncryptionReport) {
        self.init(.shadow, shadow)
    }

    /// The report of a shadow proof that failed, while the launch continued.
    init(shadowError: any Error) {
        self.init(.shadowFailed, shadowError)
    }

    private init(_ outcome: Outcome, _ encryption: EncryptionReport?) {
        self.init(outcome)
        guard let encryption else { return }
        tables = encryption.tables
        rows = encryption.rows
        bytesBefore = encryption.bytesBefore
        bytesAfter = encryption.bytesAfter
        seconds = encryption.seconds
        stageSeconds = encryption.stageSeconds
    }

    private init(_ outcome: Outcome, _ error: any Error) {
        self.init(outcome)
        switch error {
        case let error as StoreError:
            errorCode = error.code.rawValue
            sqliteCode = error.underlying.map { Int($0.extendedCode) }
            stage = error.stage
            stageSeconds = error.stageSeconds
        case let error as DatabaseError:
            errorCode = "database"
            sqliteCode = Int(error.extendedCode)
        case is KeyError: errorCode = "key"
        case is CancellationError: errorCode = StoreError.Code.cancelled.rawValue
        default: errorCode = "other"
        }
    }

    private init(_ outcome: Outcome) {
        self.outcome = outcome
        cipherVersion = Engine.current.cipherVersion
        sqliteVersion = Engine.current.sqliteVersion
    }
}

extension LaunchReport.Outcome {
    fileprivate init(_ outcome: OpenReport.Outcome) {
        self =
            switch outcome {
            case .created: .created
            case .encrypted: .encrypted
            case .opened: .opened
            case .rekeyed: .rekeyed
            case .recovered: .recovered
            case .decrypted: .decrypted
            case .openedPlaintext: .openedPlaintext
            }
    }
}
