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
    /// The journal of a writer that crashed must be rolled back before the file can be read.
    case needsRecovery
    /// A `-wal` or `-journal` of another copy lies beside the file and would overwrite it.
    case staleSidecar
}
