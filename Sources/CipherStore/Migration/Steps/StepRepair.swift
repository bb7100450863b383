/// Finds what a database lacks of the schema that its recorded version stands for.
///
/// The older systems recorded a version although a statement had failed. What only adds is made up for; where a failed
/// statement may have left rows elsewhere, nobody can tell, and nothing is touched.
struct StepRepair {
    let version: SchemaVersion
    /// The statements up to the version.
    let past: [StepCourse.Passage]
    /// The statements after it.
    let pending: [StepCourse.Passage]
    let path: String

    /// The operations that make up for what is missing, in order.
    func operations(for found: SchemaSnapshot) throws -> [Plan.Operation] {
        guard let wanted = past.last?.change.after else { return [] }
        // What a later step takes away may be gone since that step was begun.
        let removedLater = pending.reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.removed) }
        let missing = wanted.items.subtracting(found.items).subtracting(removedLater)
        guard !missing.isEmpty else { return [] }
        try checkLeftovers(found, missing)
        var made: Set<SchemaSnapshot.Item> = []
        var operations: [Plan.Operation] = []
        for passage in past {
            operations += try structure(of: passage, wanted, missing, &made)
        }
        if let rest = missing.first(where: { $0.kind == .column && !made.contains($0) }) {
            throw differs("the \(rest) is missing, and no step adds it to a table that exists")
        }
        let repaired = Repaired(made)
        operations += past.filter { repaired.concerns($0.traits) }.map { passage in
            Plan.Operation(
                .sql, object: passage.statement.place, sql: [passage.statement.sql],
                reason: "it cannot have run while what it writes was missing")
        }
        return operations + objects(wanted, missing)
    }

    /// The tables and columns that a step takes away and that the database still has.
    func leftovers(in found: SchemaSnapshot) -> [SchemaSnapshot.Item] {
        guard let wanted = past.last?.change.after else { return [] }
        let everMade = past.reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.added) }
        return everMade.subtracting(wanted.items).intersection(found.items)
            .filter { item in
                item.kind == .table || item.kind == .column && wanted.items.contains { $0.owner == item.owner }
            }
            .sorted(by: Self.byName)
    }

    /// A table of another name may hold the rows of one that is missing.
    private func checkLeftovers(_ found: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>) throws {
        let lost = missing.filter { $0.kind == .table || $0.kind == .column }
        guard let leftover = leftovers(in: found).first, let first = lost.min(by: Self.byName) else { return }
        throw differs("the \(first) is missing, and the \(leftover), which a step takes away, is still there")
    }

    private func structure(
        of passage: StepCourse.Passage, _ wanted: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>,
        _ made: inout Set<SchemaSnapshot.Item>
    ) throws -> [Plan.Operation] {
        let added = passage.change.added.intersection(missing).subtracting(made)
        let reason = "version \(version) is recorded, but what \(passage.statement.place) makes is missing"
        var operations: [Plan.Operation] = []
        for table in added.filter({ $0.kind == .table }).sorted(by: Self.byName) {
            guard let sql = wanted.sql[table] else { continue }
            made.formUnion(wanted.items.filter { $0.owner == table.owner && $0.kind == .column })
            made.insert(table)
            operations.append(
                Plan.Operation(.createTable, table: text(table.name), sql: [sql], reason: reason))
        }
        let columns = added.subtracting(made).filter { $0.kind == .column }
        if let column = columns.first, columns.count == 1, passage.change.isAdditive, passage.change.added.count == 1 {
            made.insert(column)
            operations.append(
                Plan.Operation(
                    .addColumn, table: text(column.owner), column: text(column.name), sql: [passage.statement.sql],
                    reason: reason))
        }
        return operations
    }

    private func objects(
        _ wanted: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>
    ) -> [Plan.Operation] {
        missing.sorted(by: Self.byName).compactMap { item in
            let kind: Plan.Operation.Kind
            switch item.kind {
            case .index: kind = .createIndex
            case .view: kind = .createView
            case .trigger: kind = .createTrigger
            case .table, .column: return nil
            }
            return wanted.sql[item].map {
                Plan.Operation(
                    kind, object: text(item.name), sql: [$0],
                    reason: "version \(version) is recorded, but the \(item) is missing")
            }
        }
    }

    private func differs(_ detail: String) -> StoreError {
        StoreError(
            .migration, path: path,
            "the database is not what its recorded version \(version) stands for: \(detail)",
            advice: "repair it by hand, or correct the record; nothing was changed")
    }

    private func text(_ name: SQLName) -> String { String(decoding: name.folded, as: UTF8.self) }

    private static func byName(_ left: SchemaSnapshot.Item, _ right: SchemaSnapshot.Item) -> Bool {
        if (left.kind == .table) != (right.kind == .table) { return left.kind == .table }
        return left.description < right.description
    }

    /// What was made, as tables and columns.
    private struct Repaired {
        let tables: Set<SQLName>
        let columns: [SQLName: Set<SQLName>]

        init(_ items: Set<SchemaSnapshot.Item>) {
            tables = Set(items.filter { $0.kind == .table }.map(\.name))
            columns = Dictionary(grouping: items.filter { $0.kind == .column }, by: \.owner)
                .mapValues { Set($0.map(\.name)) }
        }

        func concerns(_ traits: Rehearsal.Traits) -> Bool {
            traits.writesRows
                && (!tables.isDisjoint(with: traits.tables)
                    || traits.updates.contains { table, updated in !(columns[table] ?? []).isDisjoint(with: updated) })
        }
    }
}
