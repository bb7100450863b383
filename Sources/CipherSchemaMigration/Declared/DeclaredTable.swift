/// A table as the configuration declares it.
public struct DeclaredTable: Sendable, Equatable {
    /// The table's name.
    public var name: String
    /// The table's columns, in order.
    public var columns: [Column]
    /// The table constraints, as in `CREATE TABLE`, such as `UNIQUE (uid, day)`; `nil` keeps those of an existing
    /// table.
    ///
    /// With a list, an existing table loses every constraint that is neither in the list nor in a column's definition.
    public var constraints: [String]?
    /// The table's indexes; other indexes in the database are kept.
    public var indexes: [Index]
    /// Whether the table is a `WITHOUT ROWID` table; `nil` leaves an existing table as it is.
    public var isWithoutRowID: Bool?
    /// Whether the table is a `STRICT` table; `nil` leaves an existing table as it is.
    public var isStrict: Bool?
    /// The table's name in older versions.
    public var renamedFrom: String?
    /// The names of renamed columns, each with its name in older versions.
    public var renamedColumns: [String: String]

    /// Creates a declared table.
    public init(
        name: String, columns: [Column], constraints: [String]? = nil, indexes: [Index] = [],
        isWithoutRowID: Bool? = nil, isStrict: Bool? = nil, renamedFrom: String? = nil,
        renamedColumns: [String: String] = [:]
    ) {
        self.name = name
        self.columns = columns
        self.constraints = constraints
        self.indexes = indexes
        self.isWithoutRowID = isWithoutRowID
        self.isStrict = isStrict
        self.renamedFrom = renamedFrom
        self.renamedColumns = renamedColumns
    }

    /// A column with its type and constraints, such as `INTEGER PRIMARY KEY AUTOINCREMENT`.
    public struct Column: Sendable, Equatable {
        /// The column's name.
        public var name: String
        /// The type and constraints, as in `CREATE TABLE`.
        public var definition: String

        /// Creates a declared column.
        public init(name: String, definition: String) {
            self.name = name
            self.definition = definition
        }
    }

    /// An index on a table.
    public struct Index: Sendable, Equatable {
        /// The index's name.
        public var name: String
        /// The columns or expressions by which the index is sorted: names of columns, or SQL such as `sentAt DESC` or
        /// `lower(name)`.
        public var columns: [String]
        /// Whether the index is unique, so that no two rows may have the same values in it.
        public var isUnique: Bool
        /// The SQL condition for the rows in the index; `nil` for all rows.
        public var condition: String?

        /// Creates a declared index.
        public init(name: String, columns: [String], isUnique: Bool = false, condition: String? = nil) {
            self.name = name
            self.columns = columns
            self.isUnique = isUnique
            self.condition = condition
        }
    }
}
