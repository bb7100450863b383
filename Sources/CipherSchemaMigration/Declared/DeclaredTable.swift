/// A table as the configuration declares it.
public struct DeclaredTable: Sendable, Equatable {
    /// The table's name.
    public var name: String
    /// Its columns, in order.
    public var columns: [Column]
    /// Its table constraints, as in `CREATE TABLE`, such as `UNIQUE (uid, day)`; `nil` leaves a table the ones it has.
    public var constraints: [String]?
    /// Its indexes; others that the database has are kept.
    public var indexes: [Index]
    /// Whether it is a `WITHOUT ROWID` table; `nil` leaves a table as it is.
    public var isWithoutRowID: Bool?
    /// Whether it is a `STRICT` table; `nil` leaves a table as it is.
    public var isStrict: Bool?
    /// The name that it had in older versions.
    public var renamedFrom: String?
    /// Names of columns, each with the name that it had in older versions.
    public var renamedColumns: [String: String]

    /// A declared table.
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
        /// Type and constraints, as in `CREATE TABLE`.
        public var definition: String

        /// A declared column.
        public init(name: String, definition: String) {
            self.name = name
            self.definition = definition
        }
    }

    /// An index on a table.
    public struct Index: Sendable, Equatable {
        /// The index's name.
        public var name: String
        /// What it is sorted by: names of columns, or SQL such as `sentAt DESC` or `lower(name)`.
        public var columns: [String]
        /// Whether no two rows may have the same values in it.
        public var isUnique: Bool
        /// Which rows are in it, as SQL; all where it is left out.
        public var condition: String?

        /// A declared index.
        public init(name: String, columns: [String], isUnique: Bool = false, condition: String? = nil) {
            self.name = name
            self.columns = columns
            self.isUnique = isUnique
            self.condition = condition
        }
    }
}
