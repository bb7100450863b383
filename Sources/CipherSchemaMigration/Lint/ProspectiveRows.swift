internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The rows of a table as a plan would leave them, computed from the current rows.
struct ProspectiveRows {
    let lint: ValueLint
    let found: PresentSchema.Table
    let target: TableShape
    /// The columns whose future values are known in advance, as parts of a SELECT.
    private var columns: [SQLName: String] = [:]

    init(_ lint: ValueLint, of found: PresentSchema.Table, as target: TableShape) throws {
        self.lint = lint
        self.found = found
        self.target = target
        for column in target.columns { columns[SQLName(column.name)] = try value(of: column) }
    }

    /// Counts the rows that satisfy a condition.
    ///
    /// - Parameter join: SQL that joins another table.
    func count(joining join: String = "", where condition: String) throws -> ValueLint.Count {
        try lint.count("\(source)\(join) WHERE \(condition)")
    }

    /// Counts the values that would occur in several rows.
    func duplicates(by index: UniqueIndex) throws -> ValueLint.Count {
        try lint.count(index.duplicates(in: source))
    }

    /// Returns whether the SQL names only columns whose future values are known.
    func knows(_ sql: String) -> Bool {
        let tokens = SQLTokens(sql).tokens
        return target.columns.map { SQLName($0.name) }.filter { columns[$0] == nil }
            .allSatisfy { name in !tokens.contains { $0.isNamed(name) } }
    }

    private var source: String {
        let alias = found.shape.rowIDAlias.flatMap { target.column(SQLName($0)) == nil ? [$0] : nil } ?? []
        let all = alias + columns.sorted { $0.key.text < $1.key.text }.map(\.value)
        return "(SELECT \(all.joined(separator: ", ")) FROM main.\(SQL.quoted(identifier: found.name))) "
            + "AS \(SQL.quoted(identifier: target.name))"
    }

    /// Returns the SQL of a column's future value; `nil` if the value changes with the column's type or is computed
    /// again, so that it is known only after the change, or if its collation's name is not Unicode.
    private func value(of column: ColumnState) throws -> String? {
        let name = SQLName(column.name)
        // SQLite does not accept these as the name of a column of a subquery.
        guard ![SQLName("true"), SQLName("false")].contains(name) else { return nil }
        let old = found.shape.column(name)
        guard var value = try old.map({ try keptValue(of: column, $0) }) ?? newValue(of: column) else { return nil }
        // Only a bare column has a collation.
        let isColumn = value == found.column(name).map(SQL.quoted(column:))
        let collation = target.facts.collations[name]
        if collation != found.shape.facts.collations[name] || collation != nil && !isColumn {
            let bytes = collation?.first?.bytes.map(\.self) ?? Array("binary".utf8)
            guard let text = String(utf8: bytes) else { return nil }
            value += " COLLATE " + SQL.quoted(identifier: text)
        }
        return "\(value) AS \(SQL.quoted(identifier: column.name))"
    }

    private func newValue(of column: ColumnState) throws -> String? {
        column.generation != nil || target.isRowID(column) ? nil : try value(ofDefault: column)
    }

    private func keptValue(of column: ColumnState, _ old: ColumnState) throws -> String? {
        let name = SQLName(column.name)
        let (strict, wasStrict) = (target.facts.isStrict, found.shape.facts.isStrict)
        let keepsAffinity = old.affinity(isStrict: wasStrict) == column.affinity(isStrict: strict)
        let isStored = column.generation == nil && old.generation == nil
        let isAlike =
            isStored
            || target.defines(name, like: found.shape)
                && target.hasSameInputs(target.facts.generated[name] ?? [], as: found.shape)
        guard keepsAffinity, isAlike, let present = found.column(name).map(SQL.quoted(column:)) else { return nil }
        guard column.isNotNull, !old.isNotNull, column.defaultExpression != nil else { return present }
        // A query as an expression has the affinity of a column, which `coalesce` does not have.
        return try value(ofDefault: column).map {
            "(SELECT coalesce(\(present), \($0)) UNION ALL SELECT \(present) LIMIT 1)"
        }
    }

    /// Returns the SQL of a column's default as the column stores and compares it; `nil` if a CAST would not convert the
    /// default in the same way.
    private func value(ofDefault column: ColumnState) throws -> String? {
        let value = column.defaultExpression ?? "NULL"
        let types =
            switch column.affinity(isStrict: target.facts.isStrict) {
            case .none: [String]()
            case .text: ["TEXT"]
            case .real: ["REAL"]
            case .integer, .numeric: ["INTEGER", "NUMERIC"]
            }
        guard !types.isEmpty else { return value }
        // The comparison converts the default as the column does.
        return try types.map { "CAST(\(value) AS \($0))" }.first { try lint.isTrue("\($0) IS \(value)") }
    }
}
