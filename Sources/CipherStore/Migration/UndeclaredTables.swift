internal import CipherSQLite

/// Decides what becomes of the tables that a schema does not name.
///
/// A table is dropped only where the configuration allows it and nothing that stays depends on it; in doubt it is kept.
struct UndeclaredTables {
    let declared: Set<SQLName>
    let policy: Configuration.DestructiveChanges
    /// The table that holds the app's own record of its version.
    let versionTable: SQLName?

    struct Decision {
        var drops: [Plan.Operation] = []
        var withheld: [Plan.Withheld] = []
    }

    func decide(_ state: DatabaseState) throws -> Decision {
        var decision = Decision()
        var candidates: [TableState] = []
        for table in state.tables where !declared.contains(SQLName(table.name)) && !isOwn(table) {
            if let reason = reasonToKeep(table, state) {
                decision.withheld.append(try withhold(table, reason, state))
            } else if !isShadow(table, of: state.tables) {
                candidates.append(table)
            }
        }
        let dropped = try keepNeeded(candidates, state, &decision)
        for table in dropped {
            let rows = try state.rowCount(of: table.name)
            decision.drops.append(
                Plan.Operation(
                    .dropTable, table: table.name, sql: ["DROP TABLE \(SQL.quoted(identifier: table.name))"],
                    reason: "the schema does not name it; it holds \(rows.map(String.init) ?? "uncounted") rows",
                    risk: rows == 0 ? .removesSchema : .losesData))
        }
        return decision
    }

    private func isOwn(_ table: TableState) -> Bool {
        SQLName(table.name).hasPrefix("cipherstore_")
    }

    private func reasonToKeep(_ table: TableState, _ state: DatabaseState) -> String? {
        if table.isVirtual { return "the schema does not name it; virtual tables are never dropped" }
        if isShadow(table, of: state.tables) { return nil }
        if SQLName(table.name) == versionTable { return "it holds the version that the app recorded" }
        if policy != .allow { return "the schema does not name it, and destructiveChanges is \(policy.rawValue)" }
        return nil
    }

    /// Whether a virtual table may keep its content there: `NAME_…` for a virtual table `NAME`.
    ///
    /// Which suffixes a module uses only the module knows, and it may not be loaded. Such a table is kept without a
    /// word, for the virtual table is reported.
    private func isShadow(_ table: TableState, of tables: [TableState]) -> Bool {
        tables.contains { $0.isVirtual && SQLName(table.name).hasPrefix($0.name + "_") }
    }

    /// Takes those back that something which stays depends on, until nothing changes: what is taken back may itself
    /// depend on another.
    private func keepNeeded(
        _ candidates: [TableState], _ state: DatabaseState, _ decision: inout Decision
    ) throws -> [TableState] {
        var dropped = candidates
        while let (index, reason) = firstNeeded(dropped, state) {
            decision.withheld.append(try withhold(dropped.remove(at: index), reason, state))
        }
        return dropped
    }

    private func firstNeeded(_ dropped: [TableState], _ state: DatabaseState) -> (Int, String)? {
        let names = Set(dropped.map { SQLName($0.name) })
        let staying = state.tables.filter { !names.contains(SQLName($0.name)) }
        let objects = state.objects.filter { $0.type == "view" || !names.contains(SQLName($0.table)) }
        for (index, table) in dropped.enumerated() {
            let name = SQLName(table.name)
            if let other = staying.first(where: { $0.references.contains(name) }) {
                return (index, "the schema does not name it, but a foreign key of \(other.name) refers to it")
            }
            if let object = objects.first(where: { name.isMentioned(in: $0.sql) }) {
                return (index, "the schema does not name it, but the \(object.type) \(object.name) mentions it")
            }
        }
        return nil
    }

    private func withhold(_ table: TableState, _ reason: String, _ state: DatabaseState) throws -> Plan.Withheld {
        let rows = table.isVirtual ? nil : try state.rowCount(of: table.name)
        return Plan.Withheld(.dropTable, table: table.name, rows: rows, reason: reason)
    }
}
