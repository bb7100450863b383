public import CipherHistory

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
    /// The version that CipherStore has recorded and that counts; `nil` if it has recorded none, or it cannot be read.
    public let recordedVersion: SchemaVersion?
    /// `PRAGMA application_id`, where it can be read.
    public let applicationID: Int?
    /// `wal` or `delete`, where it can be read.
    public let journalMode: String?
    /// The cipher format that the key opened, for an encrypted file.
    public let cipherCompatibility: Int?
}
