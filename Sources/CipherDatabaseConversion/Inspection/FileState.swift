package import CipherHistory

/// What a database file is, found without changing anything.
package enum FileState: String, Sendable, Codable {
    /// There is no file.
    case missing
    /// A file of 0 bytes, which SQLite takes for a new database.
    case empty
    /// A readable SQLite database.
    case plaintext
    /// Encrypted, and the key fits.
    case encrypted
    /// Encrypted or damaged: only a key tells.
    case opaque
    /// A journal of a crashed writer must be rolled back before the file can be read.
    case needsRecovery
    /// A `-wal` or `-journal` of another generation lies beside the file and would overwrite it.
    case staleSidecar
}

/// What an inspection found.
package struct Inspection: Sendable, Codable, Equatable {
    /// The database, without symbolic links.
    package let path: String
    /// What the file is.
    package let state: FileState
    /// The file's size in bytes.
    package let size: Int64
    /// Files beside it, by name, with their sizes in bytes.
    package let sidecars: [String: Int64]
    /// `PRAGMA user_version`, where it can be read.
    package let version: Int?
    /// The version that CipherStore has recorded and that counts; `nil` where it has recorded none, or it cannot be read.
    package let recordedVersion: SchemaVersion?
    /// `PRAGMA application_id`, where it can be read.
    package let applicationID: Int?
    /// `wal` or `delete`, where it can be read.
    package let journalMode: String?
    /// The cipher format that the key opened, for an encrypted file.
    package let cipherCompatibility: Int?
}
