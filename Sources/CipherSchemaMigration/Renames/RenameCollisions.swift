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
                present.tables[SQLName(old)]?.reasonToKeep = "it is to become \(target.shape.name), \(reason)"
            } else {
                present.drop(new)
                notes.append("\(target.shape.name) is empty, and \(source.shape.name) replaces it with its rows")
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
            if let reason = try reasonToKeepBoth(source, target, of: found, present) {
                present.tables[name]?.keptColumns[SQLName(old)] = "it is to become \(target.name), \(reason)"
            } else {
                try present.replaceColumn(new, by: SQLName(old), of: name, wanted.scratch)
                notes.append("\(table.name).\(target.name) is empty, and takes the values of \(source.name)")
            }
        }
        return notes
    }

    // Sorted, so that the result is always the same.
    private func sorted(_ hints: [SQLName: String]) -> [(SQLName, String)] {
        hints.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    private func reasonToKeepBoth(_ target: PresentSchema.Table, _ present: PresentSchema) throws -> String? {
        if try state.holdsRows(target.name) { return "which contains rows itself" }
        let named = Set(wanted.objects.map { SQLName($0.name) })
        let own = present.objects(of: SQLName(target.shape.name)).map(\.object)
        guard let object = own.first(where: { !named.contains(SQLName($0.name)) }) else { return nil }
        return "which has the \(object.type) \(object.name) that the schema does not have"
    }

    private func reasonToKeepBoth(
        _ source: ColumnState, _ target: ColumnState, of table: PresentSchema.Table, _ present: PresentSchema
    ) throws -> String? {
        if try holdsValues(target, of: table) { return "which contains values itself" }
        let isPlain = [source, target].allSatisfy { $0.generation == nil && $0.primaryKeyPosition == 0 }
        guard isPlain else { return "and one of them is generated or belongs to the primary key" }
        let users = ColumnUsers(objects: present.objects.map(\.object), tables: present.tables.values.map(\.shape))
        return users.user(of: source.name, in: table.shape.name).map { "but \($0) needs it" }
    }

    private func holdsValues(_ column: ColumnState, of table: PresentSchema.Table) throws -> Bool {
        try !ValueLint(state, table, countsRows: false).values(of: column).isZero
    }
}
