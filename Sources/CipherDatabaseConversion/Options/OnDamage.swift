/// What becomes of a database that is damaged.
///
/// Damage on which no row depends, in indexes, the free list or the pointer map, costs nothing where the copy builds
/// its own. Of other damage a row may be lost, and only ``recover`` continues.
public enum OnDamage: String, Sendable, CaseIterable {
    /// An error with the code `corrupt`, which names the damaged indexes.
    ///
    /// SQLite's own check reads the whole original for it.
    case refuse
    /// The copy's indexes are filled from the rows, and it has a free list and a pointer map of its own; the report names
    /// the damaged indexes.
    ///
    /// Where an index has entries for rows that its table does not have, the table may have lost them. An encryption keeps
    /// the plaintext original then, as a backup under the name that ``EncryptionReport/backup`` tells, and warns; a
    /// conversion of an encrypted file is refused with `corrupt`.
    ///
    /// Rows that a damaged UNIQUE index should have kept out are refused, with the index and the number of keys; rows that
    /// cannot be read are refused with `corrupt`.
    case rebuildIndexes
    /// The same, and what cannot be healed so is recovered: the damaged file is kept beside as `NAME-damaged`, with the
    /// `-wal` or `-journal` that it had, and a new database of every row that it still contains takes its place.
    ///
    /// Encrypting and opening do so; other conversions do as ``rebuildIndexes`` says. The report lists what is lost. If
    /// the key opens no page of the file, the error is that of a wrong key, and nothing is changed; the same where no
    /// table's definition can be read, and, with the code `corrupt`, where a definition cannot be read while every page
    /// is whole. A file that was plaintext stays so under its new name, for the app to delete.
    case recover
}
