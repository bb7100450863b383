public import CipherDatabaseConversion
public import CipherSchemaMigration

/// A report of what opening a store did, for logs and roll-out statistics.
///
/// Contains no data from the database.
public struct OpenReport: Sendable, Codable {
    /// What was found on the disk, and what was done with it.
    public enum Outcome: String, Sendable, Codable {
        /// There was no file, so a new database was created.
        case created
        /// A legacy plaintext file was encrypted.
        case encrypted
        /// The file was already encrypted and was opened.
        case opened
        /// The key or cipher format of the encrypted file was changed.
        case rekeyed
        /// The file was damaged. It was replaced with the content that could be recovered, and the damaged file is kept
        /// beside it.
        case recovered
        /// Encryption is off, so the encrypted file was decrypted.
        case decrypted
        /// The file was opened as plaintext, because encryption is off or failed several times in a row.
        case openedPlaintext
    }

    /// What was found on the disk, and what was done with it.
    public let outcome: Outcome
    /// The encryption upgrade, decryption, change of key or format, or recovery, if there was one.
    public let encryption: EncryptionReport?
    /// The schema migration.
    public let migration: MigrationReport
    /// Warnings that the app should log, such as a postponed upgrade.
    public let warnings: [String]
    /// The shadow proof, if the configuration requests one: the result that encrypting the file would have had.
    public internal(set) var shadow: LaunchReport?

    /// The kind of launch.
    public var launch: LaunchKind { migration.launch }

    /// Whether this launch migrated the database to another version.
    public var isUpdate: Bool { migration.isUpdate }

    /// Returns this report with one more warning.
    func warning(_ text: String) -> OpenReport {
        OpenReport(
            outcome: outcome, encryption: encryption, migration: migration, warnings: warnings + [text],
            shadow: shadow)
    }
}
