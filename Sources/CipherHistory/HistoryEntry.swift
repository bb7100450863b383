/// A row of the history table.
package struct HistoryEntry: Sendable, Equatable {
    package var id: Int64
    /// A ``HistoryEvent``'s name, or one that a newer release knows.
    package var event: String
    package var fromVersion: String?
    package var toVersion: String?
    package var checksum: String?
    package var detail: String?
    package var engine: String?
    /// ISO 8601, in UTC.
    package var appliedAt: String
}
