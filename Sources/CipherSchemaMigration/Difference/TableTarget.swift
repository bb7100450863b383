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

    /// Returns the first form of the table that SQLite accepts, from the form that keeps most to the form that only
    /// keeps values.
    ///
    /// For example, a column that is kept may belong to a primary key, and the schema's table may have another key.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if SQLite accepts none of them.
    func shape(_ scratch: ScratchDatabase, path: String) throws -> TableShape {
        var failure: DatabaseError?
        for text in [
            text(kept, withConstraints: true), text(kept, withConstraints: false),
            text(kept.map(bare), withConstraints: false),
        ] {
            do {
                return try scratch.shape(of: text, name: existing.name)
            } catch let error as DatabaseError {
                failure = error
            }
        }
        throw StoreError.unreachable(
            path,
            "\(existing.name) cannot be changed to match the schema: "
                + (failure?.message ?? "SQLite rejects the definition"),
            correct: .schema, underlying: failure)
    }

    private func text(_ kept: [TableText.Item], withConstraints: Bool) -> TableText {
        var text = wanted.text
        text.items.removeAll { item in
            item.column.map { leftOut.contains(SQLName($0)) }
                ?? (keepsKey && item.isPrimaryKey || keptConstraints.contains { $0.isAlternative(to: item) })
        }
        text.items = text.items.map { item in item.column.flatMap { changed[SQLName($0)] } ?? item }
        for column in kept { text.append(column: column) }
        let constraints = withConstraints ? existingConstraints : keptKey
        text.items += constraints.filter { !text.items.contains($0) }
        let isWithoutRowID = (keepsKey || inherits.contains(.rowID) ? existing : wanted).facts.isWithoutRowID
        let isStrict = (keepsStrictness || inherits.contains(.strictness) ? existing : wanted).facts.isStrict
        text.suffix = ((isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])).joined(separator: ", ")
        return text
    }

    /// The constraints of the existing table that the table still has.
    private var existingConstraints: [TableText.Item] {
        let hasKey = wanted.columns.contains { $0.primaryKeyPosition > 0 }
        return existing.text.constraints.filter { constraint in
            if keptConstraints.contains(constraint) { return true }
            if constraint.isPrimaryKey, keepsKey || hasKey { return keepsKey }
            guard !lost.contains(where: constraint.mentions) else { return false }
            guard inherits.contains(.constraints) else {
                return kept.contains { $0.column.map { constraint.mentions(SQLName($0)) } ?? false }
            }
            return true
        }
    }

    private var keptKey: [TableText.Item] { keepsKey ? existing.text.constraints.filter(\.isPrimaryKey) : [] }

    /// Returns the column with only its type and default.
    private func bare(_ item: TableText.Item) -> TableText.Item {
        guard let name = item.column, let column = existing.column(SQLName(name)) else { return item }
        let value = column.defaultSQL.map { " DEFAULT (\($0))" } ?? ""
        let type = column.type.isEmpty ? "" : " \(column.type)"
        return TableText.Item(column: name, text: "\(SQL.quoted(identifier: name))\(type)\(value)")
    }
}

extension TableText.Item {
    /// Returns whether both are table constraints of the same kind and of the same columns.
    fileprivate func isAlternative(to other: TableText.Item) -> Bool {
        column == nil && other.column == nil && listedColumns == other.listedColumns
            && ["UNIQUE", "FOREIGN"].contains { hasKeyword($0) && other.hasKeyword($0) }
    }
}
