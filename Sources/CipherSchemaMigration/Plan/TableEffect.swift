extension Plan {
    /// The effect of an operation on a table, counted before and after the operation.
    public struct TableEffect: Sendable, Equatable, Codable {
        /// The change of a column.
        public struct Column: Sendable, Equatable, Codable {
            /// The column's name.
            public var name: String
            /// The number of rows with NULL in the column before; `nil` if there was no such column.
            public var nullsBefore: Int?
            /// The number of rows with NULL in the column after; `nil` if the column was removed.
            public var nullsAfter: Int?

            package init(name: String, nullsBefore: Int? = nil, nullsAfter: Int? = nil) {
                self.name = name
                self.nullsBefore = nullsBefore
                self.nullsAfter = nullsAfter
            }
        }

        /// The table, by its name before the operation.
        public var table: String
        /// The number of rows before; `nil` if there was no such table.
        public var rowsBefore: Int?
        /// The number of rows after; `nil` if the table was removed.
        public var rowsAfter: Int?
        /// The new name, if the table was renamed.
        public var renamedTo: String?
        /// Creates an effect from the given parts.
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

        /// The columns that were added or removed, or whose number of NULLs changed.
        ///
        /// Columns are not counted in tables to which rows were only added.
        public var columns: [Column] = []
        /// The indexes that were removed.
        public var removedIndexes: [String] = []
        /// The indexes that were added.
        public var addedIndexes: [String] = []

        /// Whether anything changed.
        var isChange: Bool {
            rowsBefore != rowsAfter || renamedTo != nil || !columns.isEmpty || !removedIndexes.isEmpty
                || !addedIndexes.isEmpty
        }
    }
}
