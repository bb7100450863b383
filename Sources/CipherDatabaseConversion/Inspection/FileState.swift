/// The state of a database file, as an inspection reports it: what can be determined with the key, if one was passed.
///
/// The inspection changes nothing.
public enum FileState: String, Sendable, Codable {
    /// The file does not exist.
    case missing
    /// The file has 0 bytes, which SQLite treats as a new database.
    case empty
    /// The file is a readable SQLite database.
    case plaintext
    /// The file is encrypted, and the key opens it.
    case encrypted
    /// The file is encrypted or damaged; only a key can show which.
    case opaque
    /// The journal of a writer that crashed must be rolled back before the file can be read.
    ///
    /// If that was the first transaction of a database, an empty file remains.
    case needsRecovery
    /// A `-wal` or `-journal` of another copy is beside the file and would overwrite it.
    case staleSidecar
}
