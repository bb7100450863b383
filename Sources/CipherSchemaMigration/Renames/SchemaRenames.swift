internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText

/// Determines which of the requested renames are still to be made, and in which order.
///
/// A hint stays in an app's configuration forever, so it has no effect if its rename was already made, or if the
/// database is older than the object that was renamed.
struct SchemaRenames {
    let wanted: WantedSchema
    let state: DatabaseState

    func apply(to present: inout PresentSchema) throws -> [String] {
        try check()
        var notes: [String] = []
        let collisions = RenameCollisions(wanted: wanted, state: state)
        notes += try collisions.resolve(in: &present)
        let tables = order(wanted.renames.tables) { present.tables[$0] != nil }
        for (old, new) in tables {
            guard let table = wanted.tables.first(where: { SQLName($0.name) == new }) else { continue }
            try present.rename(old, to: table.name, wanted.scratch)
        }
        for table in wanted.tables { notes += try renameColumns(of: table, collisions, &present) }
        return notes.sorted()
    }

    private func renameColumns(
        of table: TableShape, _ collisions: RenameCollisions, _ present: inout PresentSchema
    ) throws -> [String] {
        let name = SQLName(table.name)
        guard let hints = wanted.renames.columns[name], present.tables[name] != nil else { return [] }
        var notes = try collisions.resolveColumns(of: table, in: &present)
        guard let found = present.tables[name] else { return notes }
        for (old, new) in order(hints, isPresent: { found.shape.column($0) != nil }) {
            guard let column = table.column(new) else { continue }
            try present.renameColumn(old, to: column.name, of: name, wanted.scratch)
        }
        for (new, old) in hints where found.shape.column(new) == nil && found.shape.column(SQLName(old)) == nil {
            notes.append(
                "\(table.name) has no column \(old) to rename to \(table.column(new)?.name ?? old), so a new column is "
                    + "added")
        }
        return notes
    }

    // MARK: Order

    /// Returns pairs of old and new names, ordered so that each new name is free when its rename is made.
    private func order(
        _ hints: [SQLName: String], isPresent: (SQLName) -> Bool
    ) -> [(old: SQLName, new: SQLName)] {
        var left = hints.map { (old: SQLName($0.value), new: $0.key) }.filter { isPresent($0.old) }
            .sorted { $0.old < $1.old }
        var occupied = Set(left.flatMap { [$0.old, $0.new] }.filter(isPresent))
        var ordered: [(old: SQLName, new: SQLName)] = []
        while let index = left.firstIndex(where: { !occupied.contains($0.new) }) {
            let pair = left.remove(at: index)
            occupied.remove(pair.old)
            ordered.append(pair)
        }
        // The other objects already have their new names, and were renamed before.
        return ordered
    }

    // MARK: Faults

    private func check() throws {
        let tables = Set(wanted.tables.map { SQLName($0.name) })
        try check(wanted.renames.tables, wanted: tables) { wanted.renames.origin.place(ofTable: $0) }
        for (table, hints) in wanted.renames.columns {
            let name = wanted.table(table.text)?.name ?? table.text
            let place = wanted.renames.origin.place(ofColumnsOf: name)
            guard let shape = wanted.tables.first(where: { SQLName($0.name) == table }) else {
                throw failure(place, "the schema does not contain the table \(name)")
            }
            try check(hints, wanted: Set(shape.columns.map { SQLName($0.name) })) { "\(place).\($0)" }
        }
    }

    private func check(_ hints: [SQLName: String], wanted: Set<SQLName>, place: (String) -> String) throws {
        if let fault = RenameFault.first(in: hints) {
            throw failure(place(fault.new.text), fault.detail, advice: fault.advice)
        }
        // Sorted, so that the same fault is always reported first.
        for (new, old) in hints.sorted(by: { $0.key < $1.key }) {
            guard wanted.contains(new) else {
                throw failure(
                    place(new.text),
                    "\(old) would be renamed to \(new.text), but the schema does not contain \(new.text)")
            }
            guard !wanted.contains(SQLName(old)) || hints[SQLName(old)] != nil else {
                throw failure(
                    place(new.text), "\(old) would be renamed to \(new.text), but the schema still declares \(old)")
            }
        }
    }

    private func failure(
        _ place: String, _ problem: String, advice: String = "correct the renames in the configuration"
    ) -> StoreError {
        StoreError(.configuration, "\(place): \(problem)", advice: advice, changed: .nothing)
    }
}

extension WantedSchema.Renames.Origin {
    /// Returns the place in a configuration that contains a table's old name.
    fileprivate func place(ofTable table: String) -> String {
        switch self {
        case .tableOptions: "tableOptions.\(table).renamedFrom"
        case .template: "template.renamedTables.\(table)"
        case .tableVersions: "tableVersions.\(table)"
        }
    }

    /// Returns the place in a configuration that contains the old names of a table's columns.
    fileprivate func place(ofColumnsOf table: String) -> String {
        switch self {
        case .tableOptions: "tableOptions.\(table).renamedColumns"
        case .template: "template.renamedColumns.\(table)"
        case .tableVersions: "tableVersions.\(table).renamedColumns"
        }
    }
}
