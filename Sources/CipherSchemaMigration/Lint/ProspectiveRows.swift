internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// The rows of a table as a plan would leave them, computed from the current rows.
struct ProspectiveRows {
    let lint: ValueLint
    let found: PresentSchema.Table
    let target: TableShape
    /// The columns whose future values are known in advance, as parts of a SELECT.
    private var columns: [SQLName: String] = [:]

    init(_ lint: ValueLint, of found: PresentSchema.Table, as target: TableShape) {
        self.lint = lint
        self.found = found
        self.target = target
        for column in target.columns { columns[SQLName(column.name)] = value(of: column) }
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
    /// again, so that it is known only after the change.
    private func value(of column: ColumnState) -> String? {
        let name = SQLName(column.name)
        let alias = SQL.quoted(identifier: column.name)
        guard let old = found.shape.column(name) else {
            let isOpen = column.generation != nil || target.isRowID(column)
            return isOpen ? nil : "\(column.defaultExpression ?? "NULL") AS \(alias)"
        }
        let (strict, wasStrict) = (target.facts.isStrict, found.shape.facts.isStrict)
        let keepsAffinity = old.affinity(isStrict: wasStrict) == column.affinity(isStrict: strict)
        let isAlike = column.generation == nil && old.generation == nil && keepsAffinity
        guard isAlike || (keepsAffinity && target.defines(name, like: found.shape)), let present = found.column(name)
        else { return nil }
        var value = SQL.quoted(column: present)
        if column.isNotNull, !old.isNotNull, let filling = column.defaultExpression {
            value = "coalesce(\(value), \(filling))"
        }
        let collation = target.facts.collations[name]
        if collation != found.shape.facts.collations[name] {
            value += " COLLATE " + (collation?.first.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "binary")
        }
        return "\(value) AS \(alias)"
    }
}
