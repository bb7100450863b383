/// An event in the life of a database, as its history table names it.
public enum HistoryEvent: String, Sendable, Equatable, Codable {
    /// CipherStore took over a database that it had not created; from now on it records the version.
    case adopted
    /// The schema was changed.
    case migrated
    /// The database was created.
    case created
    /// A plaintext database was encrypted.
    case encrypted
    /// An encrypted database was given another key or cipher format.
    case rekeyed
    /// The database was damaged, and what it still contained was copied into a new, encrypted one.
    case recovered
    /// A plaintext database was opened while encryption was off.
    case openedPlaintext
    /// The schema was declared to be that of a version, without running anything.
    case baselined
    /// The present schema was accepted as intended, and recorded again.
    case repaired

    /// The events that record the version of the database.
    static let recordingVersion: [HistoryEvent] = [.adopted, .created, .migrated, .baselined, .repaired]
    /// The events that show whether the file is meant to be plaintext; the latest counts.
    static let tellingEncryption: [HistoryEvent] = [.encrypted, .openedPlaintext, .recovered]
}
