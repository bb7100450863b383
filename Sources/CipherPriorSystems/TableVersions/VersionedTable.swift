public import CipherSchemaMigration

/// A table with its own version.
public struct VersionedTable: Sendable, Equatable {
    /// The table's name.
    public var name: String
    /// The table's version: a number such as `1.4`, which is earlier than `1.5` and the same as `1.40`.
    public var version: Double
    /// The table's columns, or its `CREATE TABLE` statement.
    public var definition: Definition
    /// The new column names, each with the old name.
    public var renamedColumns: [String: String]
    /// The statements of the table's indexes.
    public var indexes: [String]
    /// The statements of the table's triggers.
    public var triggers: [String]
    /// The name under which an unfinished upgrade by the app itself leaves the old table.
    ///
    /// By default, this is `tableOld`, or the table's name followed by `Old` if the table itself is missing.
    public var leftover: String?
    /// The treatment of a database in which the old table and the new one each contain rows that the other lacks; `nil`
    /// refuses the database.
    public var leftoverRows: LeftoverRows?

    /// The treatment of an old table if it and the new table each contain their own rows.
    public enum LeftoverRows: String, Sendable, CaseIterable {
        /// Both tables stay, and the old one is reported as withheld.
        case keep
    }

    /// The declaration of a table.
    public enum Definition: Sendable, Equatable {
        /// The columns with their types and constraints.
        case columns([DeclaredTable.Column])
        /// The whole `CREATE TABLE` statement.
        case sql(String)
    }

    /// Creates a table with its own version.
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

    /// Returns the version that a text represents; `nil` if the text is not a non-negative decimal number.
    package static func version(_ text: String) -> Double? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") } ? Double(text) : nil
    }

    /// The statement that creates the table.
    var createSQL: String {
        switch definition {
        case .columns(let columns): DeclaredTable(name: name, columns: columns).createSQL
        case .sql(let sql): sql
        }
    }

    /// The properties that the declaration leaves to the database.
    var inherited: Set<WantedSchema.Property> {
        switch definition {
        case .columns(let columns): DeclaredTable(name: name, columns: columns).inherited
        case .sql: []
        }
    }
}
