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
    /// For example, a column that is kept may belong to a primary key, and the schema's table may have another key. If
    /// nothing changes, the form is the existing table, even if SQLite would not accept that again, for example because
    /// a function is not registered.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if SQLite accepts none of them.
    func shape(_ scratch: ScratchDatabase, path: String) throws -> TableShape {
        var failure: DatabaseError?
        let bare = kept.map(bare)
        for (columns, withConstraints) in [(kept, true), (bare, true), (kept, false), (bare, false)] {
            let text = text(columns, withConstraints: withConstraints)
            guard !text.isSame(as: existing.text) else { return existing }
            do {
                return try scratch.shape(of: text, name: existing.name)
            } catch let error as DatabaseError {
                failure = error
                // The constraint that needs a name that is not registered must not be lost.
                guard error.unregistered == nil else { break }
            }
        }
        throw StoreError.unreachable(
            path, "\(existing.name) cannot be changed to match the schema", correct: .schema, underlying: failure)
    }

    private func text(_ kept: [TableText.Item], withConstraints: Bool) -> TableText {
        var text = wanted.text
        text.items = columns(kept) + wanted.text.constraints.filter { !(keepsKey && $0.isPrimaryKey) }
        let constraints = withConstraints ? keptConstraints : keptKey
        text.items += constraints.filter { !text.items.contains($0) }
        let isWithoutRowID = (keepsKey || inherits.contains(.rowID) ? existing : wanted).facts.isWithoutRowID
        let isStrict = (keepsStrictness || inherits.contains(.strictness) ? existing : wanted).facts.isStrict
        text.suffix = ((isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])).joined(separator: ", ")
        return text
    }

    /// The columns of the existing table, followed by the new ones: views and triggers may select all columns with `*`.
    private func columns(_ kept: [TableText.Item]) -> [TableText.Item] {
        var items: [SQLName: TableText.Item] = [:]
        for item in wanted.text.columns + kept { items[item.name] = changed[item.name] ?? item }
        return existing.text.columns.compactMap { items[$0.name] }
            + wanted.text.columns.filter { existing.text.column($0.name) == nil && !leftOut.contains($0.name) }
    }

    private var keptConstraints: [TableText.Item] {
        let hasKey = wanted.columns.contains { $0.primaryKeyPosition > 0 }
        return existing.text.constraints.filter { constraint in
            if constraint.isPrimaryKey, keepsKey || hasKey { return keepsKey }
            func uses(_ column: SQLName) -> Bool { constraint.uses(column, of: SQLName(existing.name)) }
            guard !lost.contains(where: uses) else { return false }
            return inherits.contains(.constraints) || kept.contains { uses($0.name) }
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

extension TableText {
    /// Returns whether both texts are the same except for formatting and the order of constraints.
    fileprivate func isSame(as other: TableText) -> Bool {
        let names = Set((columns + other.columns).compactMap { $0.column.map(SQLName.init) })
        func words(_ text: TableText) -> Set<[SQLWord]> {
            Set(text.items.map { SQLTokens($0.text).normalized(columns: names) })
        }
        return items.count == other.items.count
            && [hasOption("strict"), hasOption("without", "rowid")]
                == [other.hasOption("strict"), other.hasOption("without", "rowid")]
            && words(self) == words(other)
    }
}

extension TableText.Item {
    /// The name of a column.
    fileprivate var name: SQLName { SQLName(column ?? "") }
}
