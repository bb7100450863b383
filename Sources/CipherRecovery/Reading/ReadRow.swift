package import CipherSQLiteFormat

/// A row that was found; its values are valid only during the call of the sink.
package struct ReadRow {
    /// The destination of a row.
    package enum Destination {
        /// A table, by its position in the schema.
        case table(Int)
        /// The row is set aside, outside the schema's tables.
        case apart(Reason, tables: [Int])
    }

    /// The reason why a row is in no table.
    package enum Reason: String, Sendable, CaseIterable {
        /// It is not known which table the row belongs to or whether it was deleted, or another row has its rowid or
        /// key.
        case orphaned
        /// The row is on a free page, or on a page that may be free and an undamaged index of its table does not name
        /// it.
        case deleted
        /// The rest of its page or its table's definition contradicts the row, or part of the row is lost.
        case damaged
    }

    package let destination: Destination
    /// The page that holds the row's cell.
    package let page: UInt32
    /// The rowid; `nil` in a table WITHOUT ROWID.
    package let rowid: Int64?
    /// The values of the record, in the record's order; fewer than the table's columns if columns were added later.
    package let values: [RecordValue]
}

/// The findings of a reading, including what could not be read.
package struct ReadingFindings: Sendable {
    /// The findings about one table.
    package struct Table: Sendable {
        /// Pages that are missing or damaged, by their numbers.
        package var lostPages: Set<UInt32> = []
        /// The number of rows that begin on a readable page but cannot be read completely.
        package var lostRows = 0
        /// The number of rows in the undamaged index that names the most rows; `nil` if no index is undamaged.
        package var indexedRows: Int?
        /// Whether ``indexedRows`` is greater than the number of rows in the table's own b-tree.
        package var lacksRows = false
        /// Whether the table has undamaged indexes, and each of them names exactly the rows that were found.
        package var isConfirmed = false
        /// The number of rows that may be old versions: nothing shows that their pages are in use and up to date, and
        /// the undamaged indexes do not contain all of their values.
        package var oldRows = 0
        /// Whether the keys of a table WITHOUT ROWID are not in order, so that one of its pages is an old version.
        package var isDisordered = false
        /// The number of pages to which no b-tree leads any more but whose rows belong to the table.
        package var orphanedPages = 0

        package init() {}
    }

    package var tables: [Table]
    /// Pages that cannot be read and whose owner is not known.
    package var lostPages: Set<UInt32> = []
    /// Indexes with damaged pages, by the positions of the table and the index.
    package var damagedIndexes: [(table: Int, index: Int)] = []
    /// Whether the free list is damaged, or the number of its pages differs from the header's.
    package var isFreeListDamaged = false
    /// Whether two of the b-trees, rows and the free list lead to the same page, so that one of them is old.
    package var sharesPages = false
    /// The number of pages that are neither free nor part of a b-tree, although every b-tree seems to be undamaged.
    ///
    /// An old version of a page leads to fewer pages than the lost version did.
    package var hiddenPages = 0
    /// Whether the header is lost, so that the number of pages is not known.
    package var isHeaderLost = false
    /// Whether the number of pages in the header is there, is authenticated and contradicts nothing.
    ///
    /// Otherwise, a page to which nothing leads may be an old one that the database does not use.
    package var isPageCountKnown = true
    /// Whether readable pages contradict the header's number of pages or of free pages, so that one of them is old.
    package var contradictsHeader = false
    /// The number of pages that the header counts and the file does not have.
    package var missingPages = 0
    /// Whether pages or entries of the schema are missing or damaged.
    package var isSchemaDamaged = false

    /// Whether anything in a table, an index, the schema or the free list is damaged or missing.
    package var hasDamage: Bool {
        isSchemaDamaged || isFreeListDamaged || !damagedIndexes.isEmpty || !lostPages.isEmpty
            || missingPages > 0
            || tables.contains { !$0.lostPages.isEmpty || $0.lacksRows }
    }
}
