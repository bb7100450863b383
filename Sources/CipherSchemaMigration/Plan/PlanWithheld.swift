extension Plan {
    /// A change that the target schema requires but that is not made.
    public struct Withheld: Sendable, Equatable, Codable {
        /// The change that is not made.
        public enum Kind: String, Sendable, Equatable, Codable {
            /// A table that the schema does not have is kept.
            case dropTable
            /// A column that the schema does not have is kept.
            case dropColumn
            /// A column whose definition differs from the schema's is left as it is.
            case changeColumn
            /// A table that differs from the schema's is left as it is.
            case changeTable
        }

        /// The change that is not made.
        public var kind: Kind
        /// The table that the change concerns.
        public var table: String
        /// The column that the change concerns.
        public var column: String?
        /// The number of rows of the table, or values of the column, that the change concerns, if they were counted.
        public var rows: Int?
        /// The reason why the change is not made.
        public var reason: String

        /// Creates a withheld change.
        package init(
            _ kind: Kind, table: String, column: String? = nil, rows: Int? = nil, reason: String
        ) {
            self.kind = kind
            self.table = table
            self.column = column
            self.rows = rows
            self.reason = reason
        }
    }
}
