internal import CipherSQLite
internal import CipherSystemFiles

/// A report of an encryption upgrade, a decryption, a key change, a backup, a restore, a vacuum or an in-place
/// recovery, for logs and roll-out statistics.
///
/// It contains no data of the database.
public struct EncryptionReport: Sendable, Codable, Equatable {
    /// How the run ended.
    public enum Outcome: String, Sendable, Codable {
        /// The plaintext file was encrypted.
        case encrypted
        /// The file was already encrypted with this key.
        case alreadyEncrypted
        /// There was no database, and an encrypted one was created.
        case created
        /// The encrypted file was decrypted.
        case decrypted
        /// The file was already plaintext.
        case alreadyPlaintext
        /// The key or the cipher format of the file was changed.
        case rekeyed
        /// The file already had the new key and cipher format.
        case alreadyRekeyed
        /// The encrypted copy was built, proven and discarded. The file is still plaintext.
        case shadow
        /// A proven, encrypted copy was made under another name.
        case backedUp
        /// The proven copy of a backup is now the database.
        case restored
        /// A proven copy without free pages replaced the file.
        case vacuumed
        /// The database was damaged, and a new database with what it still contained replaced it.
        case recovered
    }

    /// How the run ended.
    public var outcome: Outcome
    /// The path of the database, without symbolic links; for a backup, the path of the new file.
    public var path: String
    /// The number of tables that were copied and compared, including shadow tables of virtual tables.
    public var tables: Int
    /// The number of rows that were copied and compared; 0 if pages were compared instead, in a key change of an open
    /// store.
    public var rows: Int64
    /// The size of the file before the run, in bytes, including its log.
    public var bytesBefore: Int64
    /// The size of the file after the run, in bytes.
    public var bytesAfter: Int64
    /// The wall-clock time in seconds; for a conversion of an open store, that of the last step, in which the file is
    /// replaced.
    public var seconds: Double
    /// The wall-clock time of each stage in seconds; for a conversion of an open store, of the stages of the last step.
    public var stageSeconds: [String: Double]
    /// The version of SQLCipher that was used.
    public var cipherVersion: String
    /// The pages of the new file that were authenticated; ``PageAuthentication/none`` if those of the original could not
    /// be, and `nil` if the new file is not encrypted.
    public var authentication: PageAuthentication?
    /// The path of the plaintext backup, which was either requested or kept because an index has entries for rows that
    /// are not in its table; `nil` if there is none.
    public var backup: String?
    /// The names of the damaged indexes that were rebuilt from the rows.
    public var rebuiltIndexes: [String]
    /// A report of what a recovery restored from a damaged database and what was lost; `nil` if there was no recovery.
    public var recovery: RecoveryReport?
    /// Warnings for the caller, such as other names of the plaintext file.
    public var warnings: [String]

    init(_ outcome: Outcome, path: String) {
        self.outcome = outcome
        self.path = path
        cipherVersion = Engine.current.cipherVersion
        tables = 0
        rows = 0
        bytesBefore = 0
        bytesAfter = 0
        seconds = 0
        stageSeconds = [:]
        backup = nil
        rebuiltIndexes = []
        warnings = []
    }

    /// Creates the report about a file that was left as it is.
    init(unchanged outcome: Outcome, _ paths: DatabasePaths) throws {
        self.init(outcome, path: paths.database)
        bytesBefore = try FileSystem.size(paths.database) ?? 0
        bytesAfter = bytesBefore
    }
}

extension EncryptionReport {
    /// Records which pages were authenticated, and warns if the rows of the original may be anyone's.
    ///
    /// - Parameters:
    ///   - original: The settings of the original; `nil` if it is plaintext.
    ///   - copy: The settings of the copy; `nil` if it is plaintext.
    mutating func note(_ original: CipherSettings?, _ copy: CipherSettings?) {
        if let warning = original?.authenticationWarning {
            authentication = PageAuthentication.none
            if !warnings.contains(warning) { warnings.append(warning) }
        } else {
            // What was readable in the original may have been changed there.
            let readable = original.flatMap { $0.plaintextHeaderSize > 0 ? $0 : nil }
            authentication = copy.map { PageAuthentication(readable ?? $0) }
        }
    }
}
