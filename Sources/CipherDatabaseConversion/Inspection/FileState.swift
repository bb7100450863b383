public import CipherHistory

/// What an inspection reports of a database file: what can be told with the key, where one is given.
///
/// Found without changing anything.
public enum FileState: String, Sendable, Codable {
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
public struct Inspection: Sendable, Codable, Equatable {
    /// The database, without symbolic links.
    public let path: String
    /// What the file is.
    public let state: FileState
    /// The file's size in bytes.
    public let size: Int64
    /// Files beside it, by name, with their sizes in bytes.
    public let sidecars: [String: Int64]
    /// `PRAGMA user_version`, where it can be read.
    public let version: Int?
    /// The version that CipherStore has recorded and that counts; `nil` where it has recorded none, or it cannot be read.
    public let recordedVersion: SchemaVersion?
    /// `PRAGMA application_id`, where it can be read.
    public let applicationID: Int?
    /// `wal` or `delete`, where it can be read.
    public let journalMode: String?
    /// The cipher format that the key opened, for an encrypted file.
    public let cipherCompatibility: Int?
}
