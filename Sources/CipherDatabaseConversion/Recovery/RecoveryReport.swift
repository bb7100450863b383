/// What a recovery brought back, and what is lost.
///
/// Holds names of tables and indexes, and no stored value.
public struct RecoveryReport: Sendable, Codable, Equatable {
    /// A table of the schema.
    public struct Table: Sendable, Codable, Equatable {
        /// Its name; bytes that are not UTF-8 are shown as `\xff`.
        public var name: String
        /// How many rows it has in the new database.
        public var rows: Int
        /// The pages of the damaged file, from 1, that belonged to the table and are missing or damaged.
        ///
        /// Not all of them held rows, and a damaged page may have given some back.
        public var lostPages: [Int]
        /// What else is to be known of it.
        public var notes: [String]
    }

    /// The rows that could not be told to a table.
    public struct LostAndFound: Sendable, Codable, Equatable {
        /// The name of the table that they are in: `lost_and_found`, of a database that was recovered in its place
        /// `cipherstore_lost_and_found`; or with a number where the schema has that name.
        public var name: String
        /// Rows of which nothing tells the table, or whether they had been deleted, or whose rowid or key another row has.
        public var orphanedRows: Int
        /// Rows of free pages, and those that no index of their table names any more.
        public var deletedRows: Int
        /// Rows that the rest of their page contradicts.
        public var damagedRows: Int
    }

    /// The new database, without symbolic links.
    public var path: String
    /// The damaged database, without symbolic links; if the new one has taken its place, the name that it is kept
    /// under.
    public var source: String
    /// Whether nothing is missing as far as the damaged file tells: every page of every table was whole, or an undamaged
    /// index names as many rows as came back.
    public var complete: Bool
    /// Whether nothing was damaged, so that a recovery in place has left the database as it was.
    public var wasSound = false
    /// The tables, in the order of the schema; the ones that full-text tables keep included.
    public var tables: [Table]
    /// `nil` if every row was told to a table, and no free page held one.
    public var lostAndFound: LostAndFound?
    /// Pages that are missing or damaged, and of which nothing tells whose they were.
    public var lostPages: [Int]
    /// What is to be known of the database as a whole.
    public var notes: [String]
    /// How many rows the tables have.
    public var rows: Int
    /// The size of the damaged file in bytes, with its log.
    public var bytesBefore: Int64
    /// The size of the new file in bytes.
    public var bytesAfter: Int64
    /// The wall time in seconds.
    public var seconds: Double
}

extension RecoveryReport {
    /// Nothing was damaged, and nothing was done.
    init(sound path: String, bytes: Int64, notes: [String]) {
        self.init(
            path: path, source: path, complete: true, wasSound: true, tables: [], lostAndFound: nil, lostPages: [],
            notes: notes, rows: 0, bytesBefore: bytes, bytesAfter: bytes, seconds: 0)
    }
}
