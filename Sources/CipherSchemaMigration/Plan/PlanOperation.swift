package import CipherSQLite

extension Plan {
    /// One step of a plan.
    public struct Operation: Sendable, Equatable, Codable {
        /// The kind of step.
        public enum Kind: String, Sendable, Equatable, Codable, CaseIterable {
            /// Makes a table.
            case createTable
            /// Appends a column to a table.
            case addColumn
            /// Gives a column another name.
            case renameColumn
            /// Gives a table another name.
            case renameTable
            /// Removes a table with its rows, indexes and triggers.
            case dropTable
            /// Makes a table anew and copies its rows, where SQLite cannot alter it.
            case rebuildTable
            /// Makes an index.
            case createIndex
            /// Removes an index.
            case dropIndex
            /// Makes a view.
            case createView
            /// Removes a view.
            case dropView
            /// Makes a trigger.
            case createTrigger
            /// Removes a trigger.
            case dropTrigger
            /// Copies rows into a table.
            case copyRows
            /// Runs SQL of the app's own.
            case sql
            /// Runs Swift of the app's own.
            case swift
            /// Records the version that the database has from now on.
            case stamp
        }

        /// What a step can cost.
        public enum Risk: String, Sendable, Equatable, Codable {
            /// It only adds.
            case none
            /// It removes a part of the schema that holds no value.
            case removesSchema
            /// It removes or changes values.
            case losesData
        }

        /// Swift that a step runs, under a name.
        ///
        /// Two are equal where their names are: code cannot be compared.
        package struct Action: Sendable, Equatable {
            /// What the plan and the history call it.
            package let name: String
            let body: @Sendable (Connection) throws -> Void

            /// Swift with a name; the body runs inside the migration's transaction, which it must not end.
            package init(_ name: String, _ body: @escaping @Sendable (Connection) throws -> Void) {
                self.name = name
                self.body = body
            }

            /// Compares the names.
            package static func == (left: Action, right: Action) -> Bool { left.name == right.name }
        }

        /// The kind of step.
        public var kind: Kind
        /// The table it concerns.
        public var table: String?
        /// The column it concerns.
        public var column: String?
        /// The index, view or trigger it concerns, or the name of an app's own step.
        public var object: String?
        /// Its statements, in order, one each.
        public var sql: [String]
        /// Why it is done.
        public var reason: String
        /// What it can cost.
        public var risk: Risk
        /// The app's step that it is a part of, by the name that `destructiveSteps` takes.
        public var step: String?
        /// What it did to tables, counted before and after it; `nil` if no one counted.
        ///
        /// Only the app's own SQL and Swift is counted.
        public var effects: [TableEffect]?
        /// The Swift that it runs after its statements; no part of the machine output.
        package var action: Action?

        // Code cannot be written down.
        private enum CodingKeys: String, CodingKey {
            case kind, table, column, object, sql, reason, risk, step, effects
        }

        /// A step of the given parts.
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

        /// What it concerns, such as `chat.draft`.
        package var subject: String {
            object ?? [table, column].compactMap { $0 }.joined(separator: ".")
        }

        /// Kind and subject, such as `addColumn chat.draft`.
        package var title: String {
            subject.isEmpty ? kind.rawValue : "\(kind.rawValue) \(subject)"
        }
    }
}
