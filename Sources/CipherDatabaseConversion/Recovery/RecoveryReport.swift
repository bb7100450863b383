/// A report of what a recovery restored and what was lost.
///
/// It contains names of tables and indexes, and no stored value.
public struct RecoveryReport: Sendable, Codable, Equatable {
    /// A table of the schema.
    public struct Table: Sendable, Codable, Equatable {
        /// The name of the table.
        ///
        /// Bytes that are not UTF-8 are shown as `\xff`.
        public var name: String
        /// The number of rows of the table in the new database.
        public var rows: Int
        /// The pages of the damaged file, from 1, that belonged to the table and are missing or damaged.
        ///
        /// Not all of them held rows, and some rows of a damaged page may have been recovered.
        public var lostPages: [Int]
        /// Further notes about the table.
        public var notes: [String]
    }

    /// The rows that could not be assigned to a table.
    public struct LostAndFound: Sendable, Codable, Equatable {
        /// The name of the table that contains them: `lost_and_found`, or `cipherstore_lost_and_found` after an
        /// in-place recovery; with a number appended if the schema already uses that name.
        public var name: String
        /// The number of rows whose table is unknown, that may have been deleted or may be old versions, or whose rowid
        /// or key is that of another row.
        public var orphanedRows: Int
        /// The number of rows from free pages, and of rows from pages that may be free or are in an earlier state and to
        /// which an undamaged index of their table does not refer.
        public var deletedRows: Int
        /// The number of rows that the rest of their page contradicts.
        public var damagedRows: Int
    }

    /// The path of the new database, without symbolic links.
    public var path: String
    /// The path of the damaged database, without symbolic links; after an in-place recovery, the path under which it is
    /// kept.
    public var source: String
    /// Whether the damaged file shows that no row is missing, and that no row is an old version: the header and every
    /// entry of the schema could be read; the file has at least as many pages as its header states; every page of every
    /// table was undamaged, or the undamaged indexes refer to exactly the recovered rows; every page that belongs to
    /// nothing is free; and the whole log or journal could be read.
    public var complete: Bool
    /// Whether nothing was damaged, so that an in-place recovery left the database as it was.
    public var wasSound = false
    /// The tables, in the order of the schema, including the shadow tables of full-text tables.
    public var tables: [Table]
    /// The rows without a table; `nil` if every row was assigned to a table, and no free page held one.
    public var lostAndFound: LostAndFound?
    /// The pages that are missing or damaged and whose table is unknown.
    public var lostPages: [Int]
    /// Notes about the database as a whole.
    public var notes: [String]
    /// The number of rows in the tables.
    public var rows: Int
    /// The size of the damaged file in bytes, with its log.
    public var bytesBefore: Int64
    /// The size of the new file in bytes.
    public var bytesAfter: Int64
    /// The wall-clock time in seconds.
    public var seconds: Double
}

extension RecoveryReport {
    /// Creates the report for a database that was not damaged and was left as it is.
    init(sound path: String, bytes: Int64, notes: [String]) {
        self.init(
            path: path, source: path, complete: true, wasSound: true, tables: [], lostAndFound: nil, lostPages: [],
            notes: notes, rows: 0, bytesBefore: bytes, bytesAfter: bytes, seconds: 0)
    }
}
