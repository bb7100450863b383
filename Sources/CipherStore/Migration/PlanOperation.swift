extension Plan {
    /// One step of a plan.
    public struct Operation: Sendable, Equatable, Codable {
        /// The kind of step.
        public enum Kind: String, Sendable, Equatable, Codable, CaseIterable {
            /// Makes a table.
            case createTable
            /// Appends a column to a table.
            case addColumn
            /// Removes a table with its rows, indexes and triggers.
            case dropTable
            /// Records the version that the database has from now on.
            case stamp
        }

        /// What a step can cost.
        public enum Risk: String, Sendable, Equatable, Codable, CaseIterable {
            /// It only adds.
            case none
            /// It removes a part of the schema that holds no row.
            case removesSchema
            /// It removes rows.
            case losesData
        }

        /// The kind of step.
        public var kind: Kind
        /// The table it concerns.
        public var table: String?
        /// The column it concerns.
        public var column: String?
        /// Its statements, in order, one each.
        public var sql: [String]
        /// Why it is done.
        public var reason: String
        /// What it can cost.
        public var risk: Risk

        /// A step of the given parts.
        public init(
            _ kind: Kind, table: String? = nil, column: String? = nil, sql: [String], reason: String, risk: Risk = .none
        ) {
            self.kind = kind
            self.table = table
            self.column = column
            self.sql = sql
            self.reason = reason
            self.risk = risk
        }

        /// What it concerns, such as `chat.draft`.
        var subject: String {
            [table, column].compactMap { $0 }.joined(separator: ".")
        }
    }
}
