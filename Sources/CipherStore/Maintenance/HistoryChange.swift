public import CipherHistory

/// What was written to a history.
public struct HistoryChange: Sendable, Encodable {
    /// The database, without symbolic links.
    public let path: String
    /// What the history calls it; `nil` if nothing was to do and nothing was written.
    public let event: HistoryEvent?
    /// The version that is recorded now.
    public let version: SchemaVersion
    /// What was done, as sentences.
    public let details: [String]
}
