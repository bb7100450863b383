internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The resulting table: the schema's table, with the parts of the existing table that are kept.
struct TableTarget {
    private let wanted: TableShape
    private let existing: TableShape
    private var changed: [SQLName: TableText.Item] = [:]
    private var kept: [TableText.Item] = []
    private var lost: [SQLName] = []
    private var leftOut: Set<SQLName> = []
    private var keptConstraints: [TableText.Item] = []
    private var keepsKey = false
    private var keepsStrictness = false
    private let inherits: Set<WantedSchema.Property>

    init(_ wanted: TableShape, _ existing: TableShape, inherits: Set<WantedSchema.Property>) {
        self.wanted = wanted
        self.existing = existing
        self.inherits = inherits
    }

    /// Keeps a column that the schema's table does not have.
    mutating func keep(_ column: SQLName) {
        if let item = existing.text.column(column) { kept.append(item) }
    }

    /// Keeps a column's definition.
    mutating func keepDefinition(of column: SQLName) {
        changed[column] = existing.text.column(column)
    }

    /// Keeps a table constraint, instead of one of the same columns.
    mutating func keep(constraint: TableText.Item) { keptConstraints.append(constraint) }

    /// Keeps the existing primary key, however it is written.
    mutating func keepKey() { keepsKey = true }

    /// Keeps the table strict, if it is.
    mutating func keepStrictness() { keepsStrictness = true }

    /// Leaves out a column that does not exist yet.
    mutating func leaveOut(_ column: SQLName) { leftOut.insert(column) }

    /// Drops a column.
    mutating func lose(_ column: SQLName) { lost.append(column) }

    /// Returns the table; the existing one if nothing changes, even if SQLite would not accept it again, for example
    /// because a function is not registered.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if SQLite does not accept the table.
    func shape(_ scratch: ScratchDatabase, path: String) throws -> TableShape {
        let text = text
        guard !text.isSame(as: existing.text) else { return existing }
        do {
            return try scratch.shape(of: text, name: existing.name)
        } catch let error as DatabaseError {
            throw StoreError.unreachable(
                path, "\(existing.name) cannot be changed to match the schema: \(error.message)", correct: .schema,
                underlying: error)
        }
    }

    private var text: TableText {
        var text = wanted.text
        text.items = columns
        text.items += wanted.text.constraints.filter { item in
            !(keepsKey && item.isPrimaryKey) && !keptConstraints.contains { $0.isAlternative(to: item) }
        }
        text.items += existingConstraints.filter { !text.items.contains($0) }
        let isWithoutRowID = (keepsKey || inherits.contains(.rowID) ? existing : wanted).facts.isWithoutRowID
        let isStrict = (keepsStrictness || inherits.contains(.strictness) ? existing : wanted).facts.isStrict
        text.suffix = ((isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])).joined(separator: ", ")
        return text
    }

    /// The columns of the existing table, followed by the new ones: views and triggers may select all columns with `*`.
    private var columns: [TableText.Item] {
        var items: [SQLName: TableText.Item] = [:]
        for item in wanted.text.columns + kept { items[item.name] = changed[item.name] ?? item }
        return existing.text.columns.compactMap { items[$0.name] }
            + wanted.text.columns.filter { existing.text.column($0.name) == nil && !leftOut.contains($0.name) }
    }

    /// The constraints of the existing table that the table still has.
    private var existingConstraints: [TableText.Item] {
        let hasKey = wanted.columns.contains { $0.primaryKeyPosition > 0 }
        return existing.text.constraints.filter { constraint in
            if keptConstraints.contains(constraint) { return true }
            if constraint.isPrimaryKey, keepsKey || hasKey { return keepsKey }
            func uses(_ column: SQLName) -> Bool { constraint.uses(column, of: SQLName(existing.name)) }
            guard !lost.contains(where: uses) else { return false }
            return inherits.contains(.constraints) || kept.contains { uses($0.name) }
        }
    }
}

extension TableText {
    /// Returns whether both texts are the same but for formatting and the order of constraints.
    fileprivate func isSame(as other: TableText) -> Bool {
        items.count == other.items.count
            && [hasOption("strict"), hasOption("without", "rowid")]
                == [other.hasOption("strict"), other.hasOption("without", "rowid")]
            && Set(items.map { SQLTokens.normalized($0.text) })
                == Set(other.items.map { SQLTokens.normalized($0.text) })
    }
}

extension TableText.Item {
    /// The name of a column.
    fileprivate var name: SQLName { SQLName(column ?? "") }

    /// Returns whether both are table constraints of the same kind and of the same columns.
    fileprivate func isAlternative(to other: TableText.Item) -> Bool {
        column == nil && other.column == nil && listedColumns == other.listedColumns
            && ["UNIQUE", "FOREIGN"].contains { hasKeyword($0) && other.hasKeyword($0) }
    }
}
