/// What to do with a damaged database.
///
/// Damage to indexes, the free list or the pointer map affects no rows, and causes no loss if these are built anew for
/// the copy. If rows cannot be read, only ``recover`` continues.
public enum OnDamage: String, Sendable, CaseIterable {
    /// Throws an error with the code `corrupt` if the database is damaged.
    ///
    /// If the original can be read and only its indexes are damaged, the error names them. To find them, SQLite's own
    /// check reads the whole original. If SQLite does not read all commits of a damaged `-wal`, the error reports that.
    case refuse
    /// Rebuilds the copy's indexes from the rows. The copy has its own free list and pointer map. The report lists the
    /// damaged indexes.
    ///
    /// If an index has entries for rows that are not in its table, the table may have lost those rows. In that case, an
    /// encryption keeps the plaintext original as a backup, whose name is in ``EncryptionReport/backup``, and warns; a
    /// conversion of an encrypted file is refused with `corrupt`. The same applies if an index leads to the rows of a
    /// table, or holds records that are not its entries, if pages that look like part of a table or an index are in
    /// none, if a page belongs to two tables, if two rows share an overflow page, if a page of a table contains rowids
    /// outside of its range, or if a page of a table or the schema contains bytes that are neither rows nor free space.
    ///
    /// If a damaged `-wal` holds commits that SQLite does not read, copies of the database and its `-wal` are kept as
    /// `NAME-damaged` and `NAME-damaged-wal`, and each run reports them until they are deleted. Copies of a plaintext
    /// database are in plaintext, so the app should delete them.
    ///
    /// If a damaged UNIQUE index has let duplicate rows in, the database is refused, and the error names the index and
    /// the number of keys. If rows cannot be read, or a WITHOUT ROWID table has duplicate keys, the database is refused
    /// with `corrupt`.
    case rebuildIndexes
    /// Does the same as ``rebuildIndexes``, and recovers the database if that is not enough. The damaged file is kept
    /// beside the new one as `NAME-damaged`, with the `-wal` or `-journal` that it had. A new database takes its place,
    /// with every row that the damaged file still contains. In the cases listed for ``rebuildIndexes`` in which pages
    /// may contain such rows, the database is recovered, too.
    ///
    /// Encryption and opening do this; other conversions behave as with ``rebuildIndexes``. An encryption while the
    /// store is open ends with `corrupt`, because a recovery needs the file to be closed; the database then stays
    /// plaintext. The report lists what is lost. If the key opens no page of the file, the error is that of a wrong
    /// key. The error has the code `corrupt` if no table definition can be read, or if a definition cannot be read
    /// although every page is undamaged. Nothing is changed in these cases. A file that was plaintext stays plaintext
    /// under its new name, and the app should delete it.
    case recover
}
