public import CipherSchemaMigration

/// A table with a version of its own.
public struct VersionedTable: Sendable, Equatable {
    /// The table's name.
    public var name: String
    /// The table's version: a number such as `1.4`, which is earlier than `1.5` and the same as `1.40`.
    public var version: Double
    /// The table's columns, or its statement.
    public var definition: Definition
    /// New column name to old.
    public var renamedColumns: [String: String]
    /// The statements of its indexes.
    public var indexes: [String]
    /// The statements of its triggers.
    public var triggers: [String]
    /// The name under which the app's own upgrade leaves the old table when it does not end.
    ///
    /// By default `tableOld`, and the table's name with `Old` behind it where the table itself is gone.
    public var leftover: String?
    /// What to do where the old table and the new one each hold rows that the other lacks; `nil` refuses such a
    /// database.
    public var leftoverRows: LeftoverRows?

    /// What becomes of an old table where it and the new one hold rows of their own.
    public enum LeftoverRows: String, Sendable, CaseIterable {
        /// Both tables stay, and the old one is reported as withheld.
        case keep
    }

    /// How a table is declared.
    public enum Definition: Sendable, Equatable {
        /// Columns with type and constraints.
        case columns([DeclaredTable.Column])
        /// The whole `CREATE TABLE` statement.
        case sql(String)
    }

    /// A table with a version of its own.
    public init(
        name: String, version: Double, definition: Definition, renamedColumns: [String: String] = [:],
        indexes: [String] = [], triggers: [String] = [], leftover: String? = nil,
        leftoverRows: LeftoverRows? = nil
    ) {
        self.name = name
        self.version = version
        self.definition = definition
        self.renamedColumns = renamedColumns
        self.indexes = indexes
        self.triggers = triggers
        self.leftover = leftover
        self.leftoverRows = leftoverRows
    }

    /// The statement that makes the table.
    var createSQL: String {
        switch definition {
        case .columns(let columns): DeclaredTable(name: name, columns: columns).createSQL
        case .sql(let sql): sql
        }
    }
}
