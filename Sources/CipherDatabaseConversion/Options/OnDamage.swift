/// What becomes of a database that is damaged in a way that no row depends on: in its indexes, its free list or its pointer
/// map.
///
/// Rows are never at stake: what they cannot be read from is refused in either case, with `corrupt`.
public enum OnDamage: String, Sendable, CaseIterable {
    /// An error with the code `corrupt`, which names the damaged indexes.
    ///
    /// SQLite's own check reads the whole original for it.
    case refuse
    /// The copy's indexes are filled from the rows, and it has a free list and a pointer map of its own; the report names
    /// the damaged indexes.
    ///
    /// Rows that a damaged UNIQUE index should have kept out are refused, with the index and the number of keys.
    case rebuildIndexes
}
