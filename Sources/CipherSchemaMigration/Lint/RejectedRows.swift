internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Finds rows that the schema's constraints and unique indexes would reject.
struct RejectedRows {
    let rows: ProspectiveRows
    let existing: TableShape
    let target: TableShape

    init(_ lint: ValueLint, _ found: PresentSchema.Table, _ target: TableShape) throws {
        rows = try ProspectiveRows(lint, of: found, as: target)
        existing = found.shape
        self.target = target
    }

    /// Finds rows that would violate a new CHECK, or one that they no longer satisfy as before.
    func checkFindings() throws -> [Plan.Finding] {
        try changedChecks.filter(rows.knows).flatMap { check in
            let violations = try rows.count(where: "NOT (\(check))")
            return finding(violations, "\(violations.of("row")) of \(target.name) would violate CHECK (\(check))")
        }
    }

    /// Whether it is known in advance which rows would violate a CHECK.
    var knowsChecks: Bool { changedChecks.allSatisfy(rows.knows) }

    /// Returns whether the operations must not enforce CHECK constraints.
    ///
    /// Rows that already violate an unchanged CHECK may continue to violate it. Nothing is ignored unless ``checkFindings()``
    /// has checked every changed one.
    func ignoresChecks() throws -> Bool {
        guard !changedChecks.isEmpty else { return true }
        return try knowsChecks
            && unchangedChecks.contains { try rows.knows($0) && !rows.count(where: "NOT (\($0))").isZero }
    }

    private var changedChecks: [String] { checks.filter { !isUnchanged($0) } }

    private var unchangedChecks: [String] { checks.filter(isUnchanged) }

    private var checks: [String] { target.text.items.flatMap { $0.expressions(after: "CHECK") } }

    private func isUnchanged(_ check: String) -> Bool {
        target.hasSameCheck(SQLTokens.normalized(check), as: existing)
    }

    /// Finds values that must be unique in an index but occur in several rows.
    func duplicates(_ indexes: [DatabaseState.Object]) throws -> [Plan.Finding] {
        try indexes.flatMap { index -> [Plan.Finding] in
            guard let unique = UniqueIndex(index), rows.knows(index.sql) else { return [] }
            let duplicates = try rows.duplicates(by: unique)
            return finding(duplicates, unique.fault(duplicates, in: target.name))
        }
    }

    /// Finds rows whose new foreign keys would reference missing rows.
    ///
    /// A row that already violates a foreign key of the same columns may keep violating it. A foreign key to a column
    /// that the schema changes is checked only after the migration.
    ///
    /// - Parameters:
    ///   - parents: The existing tables.
    ///   - wanted: The schema.
    func references(
        to parents: [SQLName: PresentSchema.Table], in wanted: WantedSchema
    ) throws -> [Plan.Finding] {
        let parentsBefore = Set(existing.facts.foreignKeys.map(\.parent))
        let childrenBefore = Set(existing.facts.foreignKeys.map { Set($0.children) })
        let new = target.facts.foreignKeys.filter {
            !parentsBefore.contains($0.parent) || !childrenBefore.contains(Set($0.children))
        }
        return try new.flatMap { key -> [Plan.Finding] in
            let parent = parents[key.parent]
            guard let reference = reference(by: key, to: parent, becoming: wanted.table(key.parent.text)) else {
                return []
            }
            let dangling = try rows.count(joining: reference.join, where: reference.condition)
            return finding(
                dangling,
                "\(dangling.of("row")) of \(target.name) would reference missing rows of "
                    + "\(parent?.shape.name ?? key.parent.text)")
        }
    }

    /// Returns the SQL that finds rows without a parent; `nil` if the rows are not known.
    ///
    /// The parent is joined, because SQLite then searches it using an index, and builds that index if there is none. It
    /// does neither in a subquery if the two columns have different types. The parent's affinity and collation apply,
    /// as in ``ViolatedForeignKey``.
    private func reference(
        by key: TableShape.ForeignKey, to parent: PresentSchema.Table?, becoming wanted: TableShape?
    ) -> (join: String, condition: String)? {
        let primary = parent?.shape.columns.primaryKey ?? []
        var isSet: [String] = []
        var matches: [(parent: String, child: String)] = []
        for (index, pair) in key.columns.enumerated() {
            guard let child = pair.first ?? nil, let column = target.column(child) else { return nil }
            let name = SQL.quoted(identifier: column.name)
            guard rows.knows(name) else { return nil }
            let value = "\(SQL.quoted(identifier: target.name)).\(name)"
            isSet.append("\(value) IS NOT NULL")
            guard let parent else { continue }
            let named = pair.last ?? nil
            let other = named ?? (primary.indices.contains(index) ? SQLName(primary[index].name) : nil)
            guard let other, let found = parent.column(other), wanted?.defines(other, like: parent.shape) ?? true
            else { return nil }
            matches.append(("cipherstore_parent.\(SQL.quoted(identifier: found))", "+\(value)"))
        }
        let all = isSet.joined(separator: " AND ")
        guard let parent, let first = matches.first else { return ("", all) }
        let conditions = matches.map { "\($0.parent) = \($0.child)" }.joined(separator: " AND ")
        return (
            " LEFT JOIN main.\(SQL.quoted(identifier: parent.name)) AS cipherstore_parent ON \(conditions)",
            "\(all) AND \(first.parent) IS NULL"
        )
    }

    private func finding(_ count: ValueLint.Count, _ message: String) -> [Plan.Finding] {
        count.isZero
            ? [] : [Plan.Finding(.impossible, table: target.name, count: count.number, message: message)]
    }
}
