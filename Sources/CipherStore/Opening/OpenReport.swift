public import CipherDatabaseConversion
public import CipherSchemaMigration

/// What opening a store did, for logs and roll-out statistics.
///
/// Contains no data of the database.
public struct OpenReport: Sendable, Codable {
    /// What was found and what was done.
    public enum Outcome: String, Sendable, Codable {
        /// There was nothing: a new database was created.
        case created
        /// A legacy plaintext file was encrypted.
        case encrypted
        /// The file was encrypted before.
        case opened
        /// The encrypted file was given another key or cipher format.
        case rekeyed
        /// The file was damaged: it was replaced with what it still contained, and is kept beside it.
        case recovered
        /// Encryption is off now: the encrypted file was decrypted.
        case decrypted
        /// Encryption is off, or could not be done several times in a row: the file is plaintext.
        case openedPlaintext
    }

    /// What was found and what was done.
    public let outcome: Outcome
    /// The encryption upgrade, the decryption, the change of key or format or the recovery, where there was one.
    public let encryption: EncryptionReport?
    /// The schema migration.
    public let migration: MigrationReport
    /// What the app should log, such as an upgrade that was put off.
    public let warnings: [String]
    /// The shadow proof, where the configuration asks for one: how the file's encryption would have gone.
    public internal(set) var shadow: LaunchReport?

    /// Which kind of launch this was.
    public var launch: LaunchKind { migration.launch }

    /// Whether this launch brought the database to another version.
    public var isUpdate: Bool { migration.isUpdate }

    /// The same report with one more warning.
    func warning(_ text: String) -> OpenReport {
        OpenReport(
            outcome: outcome, encryption: encryption, migration: migration, warnings: warnings + [text],
            shadow: shadow)
    }
}
