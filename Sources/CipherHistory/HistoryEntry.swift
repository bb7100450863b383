/// A row of the history table.
package struct HistoryEntry: Sendable, Equatable {
    package var id: Int64
    /// The name of a ``HistoryEvent``, or of an event of a newer release.
    package var event: String
    package var fromVersion: String?
    package var toVersion: String?
    package var checksum: String?
    package var detail: String?
    package var engine: String?
    /// The time in ISO 8601, in UTC.
    package var appliedAt: String
}
