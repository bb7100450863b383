extension Plan {
    /// A consequence of a plan for the values in the database, found by checking them.
    public struct Finding: Sendable, Equatable, Codable {
        /// The severity of the finding.
        public enum Severity: String, Sendable, Equatable, Codable {
            /// Information; nothing is lost.
            case note
            /// Nothing is lost, but a part of the schema is not defined as it should be, and stays that way.
            case warning
            /// A part of the schema that contains no values is removed.
            case removesSchema
            /// Values are removed or changed.
            case losesData
            /// The values do not allow the change.
            case impossible
        }

        /// The severity of the finding.
        public var severity: Severity
        /// The table that the finding concerns.
        public var table: String?
        /// The column that the finding concerns.
        public var column: String?
        /// The number of rows or values, if they were counted.
        public var count: Int?
        /// A description, such as `the migration drops 1204 non-NULL values of chat.draft`.
        public var message: String

        /// Creates a finding from the given parts.
        package init(
            _ severity: Severity, table: String? = nil, column: String? = nil, count: Int? = nil, message: String
        ) {
            self.severity = severity
            self.table = table
            self.column = column
            self.count = count
            self.message = message
        }

        /// Returns a warning about an object that is not defined as it should be, and stays that way.
        ///
        /// - Parameter subject: A description of the object, such as `the table chat`.
        package static func kept(
            _ subject: String, table: String, column: String? = nil, because reason: String
        ) -> Finding {
            Finding(.warning, table: table, column: column, message: "\(subject) is not changed: \(reason)")
        }

        /// Whether the policy for destructive changes applies.
        var isDestructive: Bool { severity == .losesData || severity == .removesSchema }
    }
}

extension [Plan.Finding] {
    /// The warnings that an app must not overlook.
    package var warnings: [String] { filter { $0.severity == .warning }.map(\.message) }
}
