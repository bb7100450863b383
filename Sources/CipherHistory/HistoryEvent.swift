/// An event that the history table of a database records, by its name in the table.
public enum HistoryEvent: String, Sendable, Equatable, Codable {
    /// CipherStore adopted a database that it had not created; from then on it records the version.
    case adopted
    /// The schema was changed.
    case migrated
    /// The database was created.
    case created
    /// A plaintext database was encrypted.
    case encrypted
    /// The key or the cipher format of an encrypted database was changed.
    case rekeyed
    /// The database was damaged, and the rows that it still contained were copied into a new, encrypted database.
    case recovered
    /// A plaintext database was opened as it is, for example while encryption was off.
    case openedPlaintext
    /// The schema was declared to be that of a version, without running anything.
    case baselined
    /// The current schema was accepted as intended, and recorded again.
    case repaired

    /// The events that record the version of the database.
    static let recordingVersion: [HistoryEvent] = [.adopted, .created, .migrated, .baselined, .repaired]
    /// The events that show whether the file is intended to be plaintext; the latest event decides.
    static let tellingEncryption: [HistoryEvent] = [.encrypted, .openedPlaintext, .recovered]
}
