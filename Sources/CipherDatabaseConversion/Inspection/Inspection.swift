public import CipherHistory

/// The result of an inspection.
public struct Inspection: Sendable, Codable, Equatable {
    /// The path of the database, without symbolic links.
    public let path: String
    /// The state of the file.
    public let state: FileState
    /// The file's size in bytes.
    public let size: Int64
    /// The files beside it, by name, with their sizes in bytes.
    public let sidecars: [String: Int64]
    /// The value of `PRAGMA user_version`, if it can be read.
    public let version: Int?
    /// The effective version that CipherStore has recorded; `nil` if it has recorded none, or it cannot be read.
    public let recordedVersion: SchemaVersion?
    /// The value of `PRAGMA application_id`, if it can be read.
    public let applicationID: Int?
    /// The journal mode, `wal` or `delete`, if it can be read.
    public let journalMode: String?
    /// The cipher format that the key opened, for an encrypted file.
    public let cipherCompatibility: Int?
}
