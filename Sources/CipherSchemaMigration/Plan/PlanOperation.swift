package import CipherSQLite

extension Plan {
    /// One step of a plan.
    public struct Operation: Sendable, Equatable, Codable {
        /// The kind of step.
        public enum Kind: String, Sendable, Equatable, Codable, CaseIterable {
            /// Creates a table.
            case createTable
            /// Appends a column to a table.
            case addColumn
            /// Renames a column.
            case renameColumn
            /// Renames a table.
            case renameTable
            /// Removes a table with its rows, indexes and triggers.
            case dropTable
            /// Rebuilds a table and copies its rows, if SQLite cannot alter it.
            case rebuildTable
            /// Creates an index.
            case createIndex
            /// Removes an index.
            case dropIndex
            /// Creates a view.
            case createView
            /// Removes a view.
            case dropView
            /// Creates a trigger.
            case createTrigger
            /// Removes a trigger.
            case dropTrigger
            /// Copies rows into a table.
            case copyRows
            /// Runs the app's own SQL.
            case sql
            /// Runs the app's own Swift code.
            case swift
            /// Records the new version of the database.
            case stamp
        }

        /// The possible losses of a step.
        public enum Risk: String, Sendable, Equatable, Codable {
            /// The step only adds something.
            case none
            /// The step removes a part of the schema that contains no values.
            case removesSchema
            /// The step removes or changes values.
            case losesData
        }

        /// Named Swift code that a step runs.
        ///
        /// Two actions are equal if their names are, because code cannot be compared.
        package struct Action: Sendable, Equatable {
            /// The name in the plan and the history.
            package let name: String
            let body: @Sendable (Connection) throws -> Void

            /// Creates an action; the body runs inside the migration's transaction, which it must not end.
            package init(_ name: String, _ body: @escaping @Sendable (Connection) throws -> Void) {
                self.name = name
                self.body = body
            }

            /// Compares the names.
            package static func == (left: Action, right: Action) -> Bool { left.name == right.name }
        }

        /// The kind of step.
        public var kind: Kind
        /// The table that the step concerns.
        public var table: String?
        /// The column that the step concerns.
        public var column: String?
        /// The index, view or trigger that the step concerns, or the name of an app's own step.
        public var object: String?
        /// The SQL statements, in order, one per element.
        public var sql: [String]
        /// The reason for the step.
        public var reason: String
        /// The possible losses.
        public var risk: Risk
        /// The app's own step that this operation is part of, by its name in `destructiveSteps`.
        public var step: String?
        /// The effects on tables, counted before and after the step; `nil` if they were not counted.
        ///
        /// Only the effects of the app's own SQL and Swift code are counted.
        public var effects: [TableEffect]?
        /// The Swift code to run after the statements; not part of the machine output.
        package var action: Action?
        /// Code that tries the operation, and throws if the database does not accept it; the operation is then left out.
        ///
        /// It is `nil` if the migration fails without the operation.
        package var trial: Action?

        // Code cannot be encoded.
        private enum CodingKeys: String, CodingKey {
            case kind, table, column, object, sql, reason, risk, step, effects
        }

        /// Creates a step from the given parts.
        package init(
            _ kind: Kind, table: String? = nil, column: String? = nil, object: String? = nil, sql: [String] = [],
            reason: String, risk: Risk = .none, step: String? = nil, action: Action? = nil
        ) {
            self.kind = kind
            self.table = table
            self.column = column
            self.object = object
            self.sql = sql
            self.reason = reason
            self.risk = risk
            self.step = step
            self.action = action
        }

        /// The object that the step concerns, such as `chat.draft`.
        package var subject: String {
            object ?? [table, column].compactMap { $0 }.joined(separator: ".")
        }

        /// The subject as part of a sentence: the app may give its Swift code any phrase as a name.
        package var place: String { kind == .swift ? "the step \"\(subject)\"" : subject }

        /// The kind and the subject, such as `addColumn chat.draft`.
        package var title: String {
            subject.isEmpty ? kind.rawValue : "\(kind.rawValue) \(subject)"
        }

        /// The title as part of a sentence.
        package var titleInSentence: String { kind == .swift ? place : title }
    }
}
