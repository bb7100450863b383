package import CipherSQLiteFormat

/// A row that was found, lent while it is handed over.
package struct ReadRow {
    /// Where the row goes.
    package enum Destination {
        /// A table, by its place among the schema's.
        case table(Int)
        /// Apart from the tables.
        case apart(Reason, tables: [Int])
    }

    /// Why a row is in no table.
    package enum Reason: String, Sendable, CaseIterable {
        /// Nothing tells which table it is of, or whether it was deleted, or another row has its rowid or key.
        case orphaned
        /// It is on a page that is free, or no index of its table names it any more.
        case deleted
        /// What is left of its page contradicts it.
        case damaged
    }

    package let destination: Destination
    /// The page of its cell.
    package let page: UInt32
    /// `nil` in a table WITHOUT ROWID.
    package let rowid: Int64?
    /// The values of the record, in its order; fewer than the table has columns where columns were added later.
    package let values: [RecordValue]
}

/// What a reading found, and what it did not.
package struct ReadingFindings: Sendable {
    /// What is known of one table.
    package struct Table: Sendable {
        /// Pages that are missing or damaged, by their numbers.
        package var lostPages: Set<UInt32> = []
        /// Rows that begin on a page that was read, and cannot be read whole.
        package var lostRows = 0
        /// How many rows an undamaged index names, the one that names most; `nil` if none tells.
        package var indexedRows: Int?
        /// Whether those are more than the table's own tree has.
        package var lacksRows = false
        /// Pages that no tree leads to any more and whose rows are the table's.
        package var orphanedPages = 0

        package init() {}
    }

    package var tables: [Table]
    /// Pages that cannot be read, and of which nothing tells whose they were.
    package var lostPages: Set<UInt32> = []
    /// Indexes of which pages are damaged, by table and place.
    package var damagedIndexes: [(table: Int, index: Int)] = []
    /// Whether the free list is damaged, or does not have as many pages as the header says.
    package var isFreeListDamaged = false
    /// Whether the schema's own pages are damaged.
    package var isSchemaDamaged = false

    /// Whether any page of a table, an index, the schema or the free list is.
    package var hasDamage: Bool {
        isSchemaDamaged || isFreeListDamaged || !damagedIndexes.isEmpty || !lostPages.isEmpty
            || tables.contains { !$0.lostPages.isEmpty || $0.lacksRows }
    }
}
