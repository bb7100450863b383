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

    /// Withholds a declared column that needs a column that is left out, and returns both; `nil` if there is none.
    mutating func withholdDependent() -> (column: SQLName, needed: SQLName)? {
        for item in wanted.text.columns where !leftOut.contains(item.name) && changed[item.name] == nil {
            let needed = leftOut.sorted().first { item.uses($0, of: SQLName(wanted.name)) }
            guard let needed else { continue }
            if existing.column(item.name) == nil { leaveOut(item.name) } else { keepDefinition(of: item.name) }
            return (item.name, needed)
        }
        return nil
    }

    /// Drops a column.
    mutating func lose(_ column: SQLName) { lost.append(column) }

    /// The declared constraints that need a column that is left out.
    var leftOutConstraints: [TableText.Item] {
        wanted.text.constraints.filter { constraint in
            !(keepsKey && constraint.isPrimaryKey)
                && leftOut.contains { constraint.uses($0, of: SQLName(wanted.name)) }
        }
    }

    /// Returns the schema's table with all parts of the existing table that are kept and that SQLite accepts.
    ///
    /// SQLite refuses, for example, a CHECK of a kept column that names a dropped column. If nothing changes, the
    /// result is the existing table, even if SQLite would not accept that again, for example because a function is not
    /// registered.
    ///
    /// - Parameter indexes: The indexes that a rebuild would create again.
    /// - Throws: ``StoreError`` with the code `migration` if SQLite does not accept the table without these parts
    ///   either.
    func shape(_ scratch: ScratchDatabase, indexes: [DatabaseState.Object], path: String) throws -> TableShape {
        let whole = text(kept.map(insertable), keptConstraints)
        guard !whole.isSame(as: existing.text) else { return existing }
        // The file must stay usable if only kept columns would change.
        if text(kept, keptConstraints).isSame(as: existing.text),
            try scratch.needsUnregistered(whole, name: existing.name, indexes: indexes)
        {
            return existing
        }
        do {
            return try accepted(whole, scratch) ?? acceptedParts(scratch)
        } catch let error as DatabaseError {
            throw StoreError.unreachable(
                path, "\(existing.name) cannot be changed to match the schema", correct: .schema, underlying: error)
        }
    }

    private func accepted(_ text: TableText, _ scratch: ScratchDatabase) throws -> TableShape? {
        do {
            return try scratch.shape(of: text, name: existing.name)
        } catch let error as DatabaseError where error.unregistered == nil {
            // A constraint that needs a name that is not registered must not be lost.
            return nil
        }
    }

    /// Tries the parts one by one, because SQLite does not report which of them it refuses.
    private func acceptedParts(_ scratch: ScratchDatabase) throws -> TableShape {
        var columns = kept.map(bare)
        var constraints = keptKey
        var shape = try scratch.shape(of: text(columns, constraints), name: existing.name)
        for (index, item) in kept.map(insertable).enumerated() {
            var more = columns
            more[index] = item
            if let accepted = try accepted(text(more, constraints), scratch) { (columns, shape) = (more, accepted) }
        }
        for constraint in keptConstraints where !constraints.contains(constraint) {
            let more = constraints + [constraint]
            if let accepted = try accepted(text(columns, more), scratch) { (constraints, shape) = (more, accepted) }
        }
        return shape
    }

    private func text(_ kept: [TableText.Item], _ constraints: [TableText.Item]) -> TableText {
        var text = wanted.text
        let leftOut = leftOutConstraints
        text.items =
            columns(kept)
            + wanted.text.constraints.filter { !(keepsKey && $0.isPrimaryKey) && !leftOut.contains($0) }
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

    /// Whether the schema's primary key replaces the existing one.
    private var replacesKey: Bool { !keepsKey && wanted.columns.contains { $0.primaryKeyPosition > 0 } }

    private var keptConstraints: [TableText.Item] {
        existing.text.constraints.filter { constraint in
            if constraint.isPrimaryKey, keepsKey || replacesKey { return keepsKey }
            func uses(_ column: SQLName) -> Bool { constraint.uses(column, of: SQLName(existing.name)) }
            guard !lost.contains(where: uses) else { return false }
            return inherits.contains(.constraints) || kept.contains { uses($0.name) }
        }
    }

    private var keptKey: [TableText.Item] { keepsKey ? existing.text.constraints.filter(\.isPrimaryKey) : [] }

    private func isKey(_ column: ColumnState) -> Bool { column.primaryKeyPosition > 0 && !replacesKey }

    /// Returns a kept column in the form in which new rows can omit it: without a key that the schema replaces, and
    /// without NOT NULL if the column has no default.
    private func insertable(_ item: TableText.Item) -> TableText.Item {
        guard let column = existing.column(item.name), !isKey(column) else { return item }
        let item = item.removing("PRIMARY", "KEY")
        let needsValue = column.isNotNull && column.defaultExpression == nil && column.generation == nil
        return needsValue ? item.removing("NOT", "NULL") : item
    }

    /// Returns a kept column with only its type, collation, NOT NULL and default; a column of the key stays whole.
    private func bare(_ item: TableText.Item) -> TableText.Item {
        guard let column = existing.column(item.name), !isKey(column) else { return item }
        let value = column.defaultExpression
        let parts = [
            column.type.isEmpty ? nil : column.type,
            // The word comes from the text of the table, which is Unicode.
            existing.facts.collations[item.name]?.first.map {
                "COLLATE \(SQL.quoted(identifier: String(decoding: $0.bytes, as: UTF8.self)))"
            },
            column.isNotNull && value != nil ? "NOT NULL" : nil,
            value.map { "DEFAULT \($0)" },
        ]
        return TableText.Item(
            column: item.column,
            text: ([SQL.quoted(identifier: column.name)] + parts.compactMap { $0 }).joined(separator: " "))
    }
}

extension TableText {
    /// Returns whether both texts are the same except for formatting and the order of constraints.
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
}
