extension Plan {
    /// What an operation did to a table, counted before and after it.
    public struct TableEffect: Sendable, Equatable, Codable {
        /// What became of a column.
        public struct Column: Sendable, Equatable, Codable {
            /// The column.
            public var name: String
            /// How many rows had NULL there; `nil` where there was no such column.
            public var nullsBefore: Int?
            /// How many rows have NULL there; `nil` if the column is gone.
            public var nullsAfter: Int?

            package init(name: String, nullsBefore: Int? = nil, nullsAfter: Int? = nil) {
                self.name = name
                self.nullsBefore = nullsBefore
                self.nullsAfter = nullsAfter
            }
        }

        /// The table, by the name that it had.
        public var table: String
        /// How many rows it had; `nil` where there was no such table.
        public var rowsBefore: Int?
        /// How many rows it has; `nil` if it is gone.
        public var rowsAfter: Int?
        /// The name that it has now, where that is another.
        public var renamedTo: String?
        /// The columns that are new or gone, or whose number of NULLs is another.
        ///

        package init(
            table: String, rowsBefore: Int? = nil, rowsAfter: Int? = nil, renamedTo: String? = nil,
            columns: [Column] = [], removedIndexes: [String] = [], addedIndexes: [String] = []
        ) {
            self.table = table
            self.rowsBefore = rowsBefore
            self.rowsAfter = rowsAfter
            self.renamedTo = renamedTo
            self.columns = columns
            self.removedIndexes = removedIndexes
            self.addedIndexes = addedIndexes
        }

        /// Of tables that rows were only added to, columns are not counted.
        public var columns: [Column] = []
        /// The indexes that are gone.
        public var removedIndexes: [String] = []
        /// The indexes that are new.
        public var addedIndexes: [String] = []

        /// Whether anything is another.
        var isChange: Bool {
            rowsBefore != rowsAfter || renamedTo != nil || !columns.isEmpty || !removedIndexes.isEmpty
                || !addedIndexes.isEmpty
        }
    }
}
