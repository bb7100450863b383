internal import CipherSQLite
internal import CipherSystemFiles

/// What an encryption upgrade, a decryption, a change of key, a backup, a restore, a vacuum or a
/// recovery in place did, for logs and roll-out statistics.
///
/// Contains no data of the database.
public struct EncryptionReport: Sendable, Codable, Equatable {
    /// How the run ended.
    public enum Outcome: String, Sendable, Codable {
        /// The plaintext file was encrypted.
        case encrypted
        /// The file was encrypted with this key before.
        case alreadyEncrypted
        /// There was nothing, and an encrypted database was created.
        case created
        /// The encrypted file was decrypted.
        case decrypted
        /// The file was plaintext before.
        case alreadyPlaintext
        /// The file was given another key or cipher format.
        case rekeyed
        /// The file had the new key and cipher format before.
        case alreadyRekeyed
        /// The encrypted copy was built, proven and discarded; the file is plaintext as before.
        case shadow
        /// A proven, encrypted copy was made under another name.
        case backedUp
        /// The proven copy of a backup is the database now.
        case restored
        /// The proven copy of the file, which has no free pages, took its place.
        case vacuumed
        /// The database was damaged, and what it still held has taken its place.
        case recovered
    }

    /// How the run ended.
    public var outcome: Outcome
    /// The database, without symbolic links; of a backup, the file that was made.
    public var path: String
    /// How many tables were copied and compared, shadow tables of virtual tables included.
    public var tables: Int
    /// How many rows were copied and compared; 0 where pages were, for another key of a store that was open.
    public var rows: Int64
    /// The size of the file before, in bytes, with its log.
    public var bytesBefore: Int64
    /// The size of the file after, in bytes.
    public var bytesAfter: Int64
    /// The wall time in seconds.
    public var seconds: Double
    /// The wall time of each stage in seconds.
    public var stageSeconds: [String: Double]
    /// The version of SQLCipher that did it.
    public var cipherVersion: String
    /// The plaintext backup: asked for, or kept because an index has entries for rows that its table does not have.
    public var backup: String?
    /// The damaged indexes, which were filled from the rows, by name.
    public var rebuiltIndexes: [String]
    /// What a recovery brought back of a damaged database, and what is lost; `nil` where there was none.
    public var recovery: RecoveryReport?
    /// What the caller should know, such as other names of the plaintext file.
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

    /// The report on a file that was left as it is.
    init(unchanged outcome: Outcome, _ paths: DatabasePaths) throws {
        self.init(outcome, path: paths.database)
        bytesBefore = try FileSystem.size(paths.database) ?? 0
        bytesAfter = bytesBefore
    }
}
