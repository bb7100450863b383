internal import CipherCatalog
internal import CipherSQLText

/// Handles rename hints whose old and new names both exist in the database.
///
/// An app causes this if it creates missing tables and columns before it makes renames: the new table or column is
/// empty, and the old one contains the values. A table or column that contains its own values is never replaced, and
/// one that a hint names is never dropped.
struct RenameCollisions {
    let wanted: WantedSchema
    let state: DatabaseState

    /// Frees the new names for the renames that are possible, and marks what is kept if a rename is not possible.
    ///
    /// - Returns: Notes for the report.
    func resolve(in present: inout PresentSchema) throws -> [String] {
        var notes: [String] = []
        for (new, old) in sorted(wanted.renames.tables) where wanted.table(old) == nil {
            guard let source = present.tables[SQLName(old)], let target = present.tables[new],
                try state.holdsRows(source.name)
            else { continue }
            if let reason = try reasonToKeepBoth(target, present) {
                present.tables[SQLName(old)]?.reasonToKeep = "it cannot be renamed to \(target.shape.name), \(reason)"
            } else {
                try present.drop(new, replacedBy: source.shape, wanted.scratch)
                notes.append("the empty table \(target.shape.name) is replaced with \(source.shape.name)")
            }
        }
        return notes
    }

    /// Frees the new names of columns in the same way, after the tables have their new names.
    func resolveColumns(of table: TableShape, in present: inout PresentSchema) throws -> [String] {
        let name = SQLName(table.name)
        var notes: [String] = []
        for (new, old) in sorted(wanted.renames.columns[name] ?? [:]) where table.column(SQLName(old)) == nil {
            guard let found = present.tables[name], let source = found.shape.column(SQLName(old)),
                let target = found.shape.column(new), try holdsValues(source, of: found)
            else { continue }
            if let reason = try reasonToKeepBoth(source, target, of: found, table, present) {
                present.tables[name]?.keptColumns[SQLName(old)] = "it cannot be renamed to \(target.name), \(reason)"
            } else {
                try present.replaceColumn(new, by: SQLName(old), of: name, wanted.scratch)
                notes.append("the empty column \(table.name).\(target.name) receives the values of \(source.name)")
            }
        }
        return notes
    }

    // Sorted, so that the result is always the same.
    private func sorted(_ hints: [SQLName: String]) -> [(SQLName, String)] {
        hints.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    private func reasonToKeepBoth(_ target: PresentSchema.Table, _ present: PresentSchema) throws -> String? {
        if try state.holdsRows(target.name) { return "which already contains rows" }
        let named = Set(wanted.objects.map(\.identity))
        let own = present.objects(of: SQLName(target.shape.name)).map(\.object)
        guard let object = own.first(where: { !named.contains($0.identity) }) else { return nil }
        return "whose \(object.type) \(object.name) is not in the schema"
    }

    private func reasonToKeepBoth(
        _ source: ColumnState, _ target: ColumnState, of table: PresentSchema.Table, _ declared: TableShape,
        _ present: PresentSchema
    ) throws -> String? {
        if try holdsValues(target, of: table) { return "which already contains values" }
        let isPlain = [source, target].allSatisfy { $0.generation == nil && $0.primaryKeyPosition == 0 }
        guard isPlain else { return "because one of the two columns is generated or belongs to the primary key" }
        let (old, new) = (SQLName(source.name), SQLName(target.name))
        // The schema's definition replaces the column's own, unless its values or the primary key would change.
        let isReplaced =
            declared.column(new)?.affinity(isStrict: declared.facts.isStrict)
            == source.affinity(isStrict: table.shape.facts.isStrict) && table.shape.hasSameKey(as: declared)
        if !isReplaced, let item = table.shape.text.column(old), item.uses(new, of: SQLName(table.shape.name)) {
            return "because \(item.text) names both columns"
        }
        // The definition of another column may stay, and would name the new column twice.
        let other = table.shape.text.columns.first { item in
            ![old, new].contains(SQLName(item.column ?? ""))
                && [old, new].allSatisfy { item.uses($0, of: SQLName(table.shape.name)) }
        }
        if let other { return "because \(other.text) names both columns" }
        let named = Set(wanted.objects.map(\.identity))
        let index = present.objects(of: SQLName(table.shape.name)).map(\.object).filter(\.isUniqueIndex).first {
            let tokens = SQLTokens($0.sql)
            return !named.contains($0.identity) && tokens.contains(column: old) && tokens.contains(column: new)
        }
        if let index { return "because the unique index \(index.name) contains both columns" }
        let users = ColumnUsers(objects: present.objects.map(\.object), tables: present.tables.values.map(\.shape))
        return users.user(of: source.name, in: table.shape.name).map { "because \($0) needs it" }
    }

    private func holdsValues(_ column: ColumnState, of table: PresentSchema.Table) throws -> Bool {
        try !ValueLint(state, table, countsRows: false).values(of: column).isZero
    }
}

extension TableShape {
    /// Returns whether both tables have the same columns in the primary key, defined in the same way.
    fileprivate func hasSameKey(as other: TableShape) -> Bool {
        let (mine, theirs) = (columns.primaryKey, other.columns.primaryKey)
        return mine.count == theirs.count
            && zip(mine, theirs).allSatisfy {
                SQLName($0.name) == SQLName($1.name) && defines(SQLName($0.name), like: other)
            }
    }
}
