/// What an encryption upgrade did, for logs and roll-out statistics.
///
/// Holds no data of the database.
public struct EncryptionReport: Sendable, Codable, Equatable {
    /// How the run ended.
    public enum Outcome: String, Sendable, Codable {
        /// The plaintext file was encrypted.
        case encrypted
        /// The file was encrypted with this key before.
        case alreadyEncrypted
        /// There was nothing, and an encrypted database was made.
        case created
    }

    /// How the run ended.
    public var outcome: Outcome
    /// The database, without symbolic links.
    public var path: String
    /// How many tables were copied and compared, shadow tables of virtual tables included.
    public var tables: Int
    /// How many rows were copied and compared.
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
    /// The plaintext backup that was asked for.
    public var backup: String?
    /// What could not be done, such as other names of the plaintext file.
    public var warnings: [String]

    init(outcome: Outcome, path: String, cipherVersion: String) {
        self.outcome = outcome
        self.path = path
        self.cipherVersion = cipherVersion
        tables = 0
        rows = 0
        bytesBefore = 0
        bytesAfter = 0
        seconds = 0
        stageSeconds = [:]
        backup = nil
        warnings = []
    }
}
