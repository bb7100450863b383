extension Plan {
    /// What a plan means for the values in the database, found by looking at them.
    public struct Finding: Sendable, Equatable, Codable {
        /// How bad it is.
        public enum Severity: String, Sendable, Equatable, Codable {
            /// Worth knowing; nothing is lost.
            case note
            /// Nothing is lost, but something is not as it should be and stays so.
            case warning
            /// A part of the schema goes that holds no value.
            case removesSchema
            /// Values go or change.
            case losesData
            /// The values do not allow it.
            case impossible
        }

        /// How bad it is.
        public var severity: Severity
        /// The table it concerns.
        public var table: String?
        /// The column it concerns.
        public var column: String?
        /// How many rows or values, where they were counted.
        public var count: Int?
        /// What it is, such as `drops 1204 non-NULL values of chat.draft`.
        public var message: String

        /// A finding of the given parts.
        package init(
            _ severity: Severity, table: String? = nil, column: String? = nil, count: Int? = nil, message: String
        ) {
            self.severity = severity
            self.table = table
            self.column = column
            self.count = count
            self.message = message
        }

        /// What is defined otherwise than it should be, and stays so.
        ///
        /// - Parameter subject: What it is, such as `the table chat`.
        package static func kept(
            _ subject: String, table: String, column: String? = nil, because reason: String
        ) -> Finding {
            Finding(.warning, table: table, column: column, message: "\(subject) is kept as it is: \(reason)")
        }

        /// Whether the policy decides about it.
        var isDestructive: Bool { severity == .losesData || severity == .removesSchema }
    }
}

extension [Plan.Finding] {
    /// What an app must not overlook.
    package var warnings: [String] { filter { $0.severity == .warning }.map(\.message) }
}
