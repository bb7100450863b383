internal import CipherDatabaseConversion
public import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration

/// A summary of one launch in numbers and names, for the statistics of a staged roll-out.
///
/// It is created from the report of an opened store, or from the error that opening threw.
///
/// Contains no path, message, table name or other content of the database.
public struct LaunchReport: Sendable, Codable, Equatable {
    /// How the launch ended.
    public enum Outcome: String, Sendable, Codable {
        /// A new database was created.
        case created
        /// A legacy file was encrypted.
        case encrypted
        /// An encrypted file was opened.
        case opened
        /// The key or cipher format of an encrypted file was changed.
        case rekeyed
        /// A damaged file was recovered.
        case recovered
        /// Encryption is off, so the encrypted file was decrypted.
        case decrypted
        /// A plaintext file was opened.
        case openedPlaintext
        /// A plaintext file was opened after a successful shadow proof of its encryption.
        case shadow
        /// A plaintext file was opened after a failed shadow proof of its encryption.
        case shadowFailed
        /// The store could not be opened.
        case failed
    }

    /// How the launch ended.
    public var outcome: Outcome
    /// The ``StoreError/Code`` of the failure; `database`, `key` or `other` for errors of other types.
    public var errorCode: String?
    /// SQLite's extended result code, if SQLite reported the failure.
    public var sqliteCode: Int?
    /// The stage at which the upgrade failed.
    public var stage: UpgradeStage?
    /// The number of tables that were copied and compared.
    public var tables: Int?
    /// The number of rows that were copied and compared.
    public var rows: Int64?
    /// The size of the file before an upgrade, including its log, in bytes.
    public var bytesBefore: Int64?
    /// The size of the file after the upgrade, in bytes; for a shadow proof, the size that it would have had.
    public var bytesAfter: Int64?
    /// The wall-clock time of the upgrade in seconds.
    public var seconds: Double?
    /// The wall-clock time of each stage in seconds; for a failed upgrade, of the stages that had begun.
    public var stageSeconds: [String: Double] = [:]
    /// The schema's version before the launch: 0 for a new database, and `nil` if a database has no recorded version.
    public var versionBefore: String?
    /// The schema's version after the launch.
    public var versionAfter: String?
    /// The number of warnings in the whole report, including those of a shadow proof.
    public var warnings = 0
    /// The version of SQLCipher.
    public var cipherVersion: String
    /// The version of SQLite that SQLCipher contains.
    public var sqliteVersion: String

    /// Creates the report of a successful launch.
    public init(_ report: OpenReport) {
        let outcome = Outcome(report.outcome)
        self = report.shadow ?? LaunchReport(outcome, report.encryption)
        versionBefore = report.migration.from?.description
        versionAfter = report.migration.to.description
        warnings = report.warnings.count
    }

    /// Creates the report of a failed launch from the error that opening the store threw.
    public init(_ error: any Error) {
        self.init(.failed, error)
    }

    /// Creates the report of a successful shadow proof.
    init(shadow: EncryptionReport) {
        self.init(.shadow, shadow)
        warnings = shadow.warnings.count
    }

    /// Creates the report of a failed shadow proof; the launch itself continues.
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
