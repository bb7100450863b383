internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

/// Finds the parts of the recorded version's schema that a database lacks.
///
/// The older systems recorded a version even if a statement had failed. Statements that only add are repeated. If a
/// failed statement may have left rows elsewhere, the state is unclear, and nothing is changed.
struct StepRepair {
    let version: SchemaVersion
    /// The statements up to the version.
    let past: [StepSchemas.Passage]
    /// The statements after the version, step by step.
    let pending: [[StepSchemas.Passage]]
    /// The triggers in the database.
    let triggers: [DatabaseState.Object]
    let scratch: ScratchDatabase
    let path: String

    /// The operations that repair a database, and the findings about it.
    struct Repair {
        /// The operations that correct missing or different parts, in order.
        var operations: [Plan.Operation] = []
        var findings: [Plan.Finding] = []
    }

    func repair(of found: SchemaSnapshot) throws -> Repair {
        guard let wanted = past.last?.change.after else { return Repair() }
        let definitions = RecordedDefinitions(
            version: version, wanted: wanted, later: pending.joined().map(\.change.after), scratch: scratch)
        let differing = definitions.differingObjects(in: found)
        let missing = absent(from: found, wanted)
        return Repair(
            operations: try drops(of: differing) + dropsOfLeftovers(in: found) + makingUp(for: missing, found, wanted)
                + objects(wanted, missing, differing),
            findings: try definitions.findings(in: found))
    }

    /// Returns operations that create missing tables and columns, and write the rows that could not be written without
    /// these tables and columns.
    private func makingUp(
        for missing: Set<SchemaSnapshot.Item>, _ found: SchemaSnapshot, _ wanted: SchemaSnapshot
    ) throws -> [Plan.Operation] {
        guard !missing.isEmpty else { return [] }
        try checkLeftovers(found, missing)
        var made: Set<SchemaSnapshot.Item> = []
        var operations: [Plan.Operation] = []
        for passage in past {
            operations += try structure(of: passage, wanted, missing, &made)
        }
        if let rest = missing.first(where: { $0.kind == .column && !made.contains($0) }) {
            throw differs("the \(rest) is missing, and no step adds it to an existing table")
        }
        let repaired = Repaired(made)
        return operations
            + past.filter { repaired.concerns($0.traits) }.map { passage in
                Plan.Operation(
                    .sql, object: passage.statement.place, sql: [passage.statement.sql],
                    reason: "the statement was never applied: its target did not exist",
                    step: passage.statement.step)
            }
    }

    // MARK: Missing parts

    /// Returns the items that the recorded version has and the database lacks, except those that a later step has
    /// removed since that step was started.
    ///
    /// The database may be in one of several states; the state with the fewest missing items is used.
    private func absent(from found: SchemaSnapshot, _ wanted: SchemaSnapshot) -> Set<SchemaSnapshot.Item> {
        let absent = wanted.items.subtracting(found.items)
        let removedLater = pending.joined().reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.removed) }
        guard !absent.isDisjoint(with: removedLater) else { return absent }
        // Steps that only add leave gaps, because their failures went unnoticed; they do not identify a state.
        let touched = pending.filter { !$0.allSatisfy(\.change.isAdditive) }.joined()
            .reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.touched) }
        var least: Set<SchemaSnapshot.Item>?
        for moment in [wanted] + pending.joined().map(\.change.after) {
            let missing = absent.intersection(moment.items)
            guard missing.count < least?.count ?? .max,
                touched.allSatisfy({ moment.has($0) == (found.has($0) || missing.contains($0)) })
            else { continue }
            least = missing
        }
        return least ?? absent.subtracting(removedLater)
    }

    /// Returns the items that a step removes but the database still has: tables, columns, and objects that are dropped
    /// by name.
    func leftovers(in found: SchemaSnapshot) -> [SchemaSnapshot.Item] {
        guard let wanted = past.last?.change.after else { return [] }
        let everMade = past.reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.added) }
        return everMade.subtracting(wanted.items).intersection(found.items)
            .filter { item in
                switch item.kind {
                case .table: true
                case .column: wanted.items.contains { $0.owner == item.owner }
                // Other objects are dropped with their table.
                case .index, .view, .trigger: isDroppedAlone(item)
                }
            }
            .sorted(by: Self.byName)
    }

    private func isDroppedAlone(_ item: SchemaSnapshot.Item) -> Bool {
        // If a later step creates the item again, that step may already have created it.
        guard !pending.joined().contains(where: { $0.change.added.contains(item) }) else { return false }
        return past.last { $0.change.removed.contains(item) }?.change.removed.allSatisfy { $0.kind != .table } ?? false
    }

    /// Returns whether a leftover is a unique index that the steps created, which would continue to reject rows;
    /// dropping the index loses nothing.
    func isDropped(_ leftover: SchemaSnapshot.Item, in found: SchemaSnapshot) -> Bool {
        guard leftover.kind == .index, let sql = found.sql[leftover], let definition = found.definitions[leftover]
        else {
            return false
        }
        return SQLTokens(sql, first: 2).tokens.contains { $0.isKeyword("UNIQUE") }
            && past.contains { $0.change.after.definitions[leftover] == definition }
    }

    /// Checks for leftovers, because a table with another name may contain the rows of a missing table.
    private func checkLeftovers(_ found: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>) throws {
        let lost = missing.filter { $0.kind == .table || $0.kind == .column }
        let leftover = leftovers(in: found).first { $0.kind == .table || $0.kind == .column }
        guard let leftover, let first = lost.min(by: Self.byName) else { return }
        throw differs("the \(first) is missing, but the \(leftover), which a step should have removed, still exists")
    }

    private func structure(
        of passage: StepSchemas.Passage, _ wanted: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>,
        _ made: inout Set<SchemaSnapshot.Item>
    ) throws -> [Plan.Operation] {
        let added = passage.change.added.intersection(missing).subtracting(made)
        let reason = "version \(version) is recorded, but an object that \(passage.statement.place) creates is missing"
        var operations: [Plan.Operation] = []
        for table in added.filter({ $0.kind == .table }).sorted(by: Self.byName) {
            guard let sql = wanted.sql[table] else { continue }
            made.formUnion(wanted.items.filter { $0.owner == table.owner && $0.kind == .column })
            made.insert(table)
            operations.append(
                Plan.Operation(.createTable, table: table.name.text, sql: [sql], reason: reason))
        }
        let columns = added.subtracting(made).filter { $0.kind == .column }
        if let column = columns.first, columns.count == 1, passage.change.isAdditive, passage.change.added.count == 1 {
            made.insert(column)
            operations.append(
                Plan.Operation(
                    .addColumn, table: column.owner.text, column: column.name.text, sql: [passage.statement.sql],
                    reason: reason))
        }
        return operations
    }

    // MARK: Indexes, views and triggers

    private func drops(of differing: Set<SchemaSnapshot.Item>) -> [Plan.Operation] {
        differing.sorted(by: Self.byName).reversed().compactMap { item in
            kinds(of: item).map {
                Plan.Operation(
                    $0.drop, object: item.name.text,
                    sql: ["DROP \(item.kind.rawValue.uppercased()) \(SQL.quoted(identifier: item.name.text))"],
                    reason: "the \(item) differs from its definition in the recorded version \(version)")
            }
        }
    }

    private func dropsOfLeftovers(in found: SchemaSnapshot) -> [Plan.Operation] {
        leftovers(in: found).filter { isDropped($0, in: found) }.map { item in
            Plan.Operation(
                .dropIndex, object: item.name.text,
                sql: ["DROP INDEX \(SQL.quoted(identifier: item.name.text))"],
                reason: "the index still exists, although one of the steps up to the recorded version \(version) "
                    + "should have dropped it")
        }
    }

    /// Returns operations that create indexes, views and triggers; a view's triggers are dropped and created again with
    /// the view.
    private func objects(
        _ wanted: SchemaSnapshot, _ missing: Set<SchemaSnapshot.Item>, _ differing: Set<SchemaSnapshot.Item>
    ) -> [Plan.Operation] {
        let made = missing.union(differing).sorted(by: Self.byName).compactMap { item in
            kinds(of: item).flatMap { kinds in
                wanted.sql[item].map {
                    Plan.Operation(
                        kinds.create, object: item.name.text, sql: [$0],
                        reason: missing.contains(item)
                            ? "version \(version) is recorded, but the \(item) is missing"
                            : "the \(item) belongs to the recorded version \(version)")
                }
            }
        }
        let views = Set(differing.filter { $0.kind == .view }.map(\.name))
        let lost = triggers.filter { trigger in
            let name = SQLName(trigger.name)
            return views.contains(SQLName(trigger.table))
                && !differing.contains(.init(kind: .trigger, owner: name, name: name))
        }
        return made
            + lost.map {
                Plan.Operation(
                    .createTrigger, object: $0.name, sql: [$0.sql], reason: "the trigger was dropped with its view")
            }
    }

    private func kinds(
        of item: SchemaSnapshot.Item
    ) -> (drop: Plan.Operation.Kind, create: Plan.Operation.Kind)? {
        switch item.kind {
        case .index: (.dropIndex, .createIndex)
        case .view: (.dropView, .createView)
        case .trigger: (.dropTrigger, .createTrigger)
        case .table, .column: nil
        }
    }

    private func differs(_ detail: String) -> StoreError {
        StoreError(
            .migration, path: path,
            "the database does not match its recorded version \(version): \(detail)",
            advice: "repair the database by hand, or correct the recorded version", changed: .nothing)
    }

    /// Returns whether the left item precedes the right one: tables come first, and views before their triggers.
    private static func byName(_ left: SchemaSnapshot.Item, _ right: SchemaSnapshot.Item) -> Bool {
        let order: [SchemaSnapshot.Item.Kind] = [.table, .column, .index, .view, .trigger]
        let places = [left, right].map { order.firstIndex(of: $0.kind) ?? 0 }
        return places[0] == places[1] ? left.description < right.description : places[0] < places[1]
    }

    /// The tables and columns that were created.
    private struct Repaired {
        let tables: Set<SQLName>
        let columns: [SQLName: Set<SQLName>]

        init(_ items: Set<SchemaSnapshot.Item>) {
            tables = Set(items.filter { $0.kind == .table }.map(\.name))
            columns = Dictionary(grouping: items.filter { $0.kind == .column }, by: \.owner)
                .mapValues { Set($0.map(\.name)) }
        }

        func concerns(_ traits: StatementTraits) -> Bool {
            traits.writesRows
                && (!tables.isDisjoint(with: traits.tables)
                    || traits.updates.contains { table, updated in !(columns[table] ?? []).isDisjoint(with: updated) })
        }
    }
}
