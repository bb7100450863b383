package import CipherHistory

/// What was written to a history.
package struct HistoryChange: Sendable, Encodable {
    /// The database, without symbolic links.
    package let path: String
    /// What the history calls it; `nil` where nothing was to do and nothing was written.
    package let event: HistoryEvent?
    /// The version that is recorded now.
    package let version: SchemaVersion
    /// What was done, as sentences.
    package let details: [String]
}
