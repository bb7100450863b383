internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The indexes, views and triggers that CipherStore's own operations must keep.
///
/// A rebuild removes a table's indexes and triggers and creates them again, so an object that a plan overlooks would be
/// lost without a report.
struct KeptObjects {
    private let before: DatabaseState
    private let origins: [SQLName: Plan.Origin]
    private let objects: [DatabaseState.Object]

    init(of state: DatabaseState, under plan: Plan) {
        before = state
        origins = plan.origins
        objects = state.objects.filter { object in
            !plan.operations.contains { $0.concerns(object, object.kinds.drop) }
                || plan.operations.contains { $0.concerns(object, object.kinds.create) }
        }
    }

    /// Throws if an object no longer exists, although its table still has all the columns that the object contains.
    ///
    /// - Parameter pending: The operations that follow, which may create objects again.
    func requireAll(in connection: Connection, before pending: some Sequence<Plan.Operation>) throws {
        let left = Set(try DatabaseState.readObjects(connection).map(\.identity))
        let missing = objects.filter { object in
            !left.contains(object.identity) && !pending.contains { $0.concerns(object, object.kinds.create) }
        }
        guard !missing.isEmpty else { return }
        let after = try DatabaseState(of: connection, countsRows: false) { nil }
        guard let lost = missing.first(where: { !isDropped($0, with: after) }) else { return }
        throw StoreError(
            .migration, path: connection.path,
            "the migration would remove the \(lost.type) \(lost.name) of \(lost.table), but the plan does not "
                + "include this removal",
            advice: "this is a bug: please report it with this message and the schema", changed: .nothing)
    }

    /// Returns whether an object was dropped with its table or view, or with a column that it contains.
    private func isDropped(_ object: DatabaseState.Object, with after: DatabaseState) -> Bool {
        guard object.type != "view" else { return false }
        let old = SQLName(object.table)
        let new = origins.first { $0.value.table == old }?.key ?? old
        guard let table = after.table(new.text) else {
            return !after.objects.contains { $0.type == "view" && SQLName($0.name) == new }
        }
        guard object.type == "index", let existing = before.table(object.table) else { return false }
        let kept = table.columns.map { SQLName($0.name) }.map { origins[new]?.columns[$0] ?? $0 }
        let tokens = SQLTokens(object.sql)
        return existing.columns.map { SQLName($0.name) }.contains { !kept.contains($0) && tokens.contains(column: $0) }
    }
}

extension Plan.Operation {
    /// Returns whether the operation is of this kind and names the object.
    func concerns(_ object: DatabaseState.Object, _ kind: Kind) -> Bool {
        self.kind == kind && self.object.map(SQLName.init) == SQLName(object.name)
    }
}
