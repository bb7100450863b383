public import CipherHistory

/// A change to a database's history.
public struct HistoryChange: Sendable, Encodable {
    /// The path of the database, with symbolic links resolved.
    public let path: String
    /// The event written to the history; `nil` if there was nothing to do and nothing was written.
    public let event: HistoryEvent?
    /// The recorded version after the change.
    public let version: SchemaVersion
    /// What was done, as sentences.
    public let details: [String]
}
