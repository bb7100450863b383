internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Decides what happens to the tables that a schema does not name.
///
/// A table is dropped only if the policy allows it and nothing that stays depends on it; if in doubt, it is kept.
struct UnnamedTables {
    let comparison: SchemaComparison
    let state: DatabaseState
    /// The tables that the schema names, as they will be after the changes.
    let named: [SQLName: TableShape]
    /// The tables that the schema does not name, as they will be after the changes.
    let unnamed: [SQLName: TableShape]
    /// The tables that stay, with the reasons.
    let kept: [SQLName: String]
    /// The views, triggers and virtual tables that will exist afterwards.
    let objects: [DatabaseState.Object]
    /// The prefixes of the names of tables in which virtual tables may store their data.
    private let virtualPrefixes: [String]

    private(set) var drops: [Plan.Operation] = []
    private(set) var withheld: [Plan.Withheld] = []
    private(set) var findings: [Plan.Finding] = []

    init(
        _ comparison: SchemaComparison, _ state: DatabaseState, named: [SQLName: TableShape],
        unnamed: [SQLName: TableShape], kept: [SQLName: String], objects: [DatabaseState.Object]
    ) throws {
        self.comparison = comparison
        self.state = state
        self.named = named
        self.unnamed = unnamed
        self.kept = kept
        self.objects = objects
        virtualPrefixes = state.tables.filter(\.isVirtual).map { $0.name + "_" }
        if comparison.unnamedTables == .drop { try decide() }
    }

    private mutating func decide() throws {
        let wantedVirtual = Set(comparison.wanted.virtualTables.map { SQLName($0.name) })
        var candidates: [TableState] = []
        for table in state.tables {
            let name = SQLName(table.name)
            guard table.isVirtual ? !wantedVirtual.contains(name) : unnamed[name] != nil else { continue }
            if let reason = reasonToKeep(table) {
                try withhold(table, reason)
            } else if !isShadow(table) {
                candidates.append(table)
            }
        }
        for table in try keepNeeded(candidates) { try drop(table) }
    }

    private mutating func drop(_ table: TableState) throws {
        let rows = try state.countedRows(of: table.name)
        let isEmpty = rows == 0
        let count = "\(rows) row\(rows == 1 ? "" : "s")"
        drops.append(
            Plan.Operation(
                .dropTable, table: table.name, sql: ["DROP TABLE \(SQL.quoted(identifier: table.name))"],
                reason: "the table is not in the schema; it contains \(isEmpty ? "no rows" : count)",
                risk: isEmpty ? .removesSchema : .losesData))
        findings.append(
            Plan.Finding(
                isEmpty ? .removesSchema : .losesData, table: table.name, count: rows,
                message: isEmpty
                    ? "the migration drops \(table.name), which contains no rows"
                    : "the migration drops \(table.name), which contains \(count)"))
    }

    private func reasonToKeep(_ table: TableState) -> String? {
        if table.isVirtual { return "the table is not in the schema, but virtual tables are never dropped" }
        if isShadow(table) { return nil }
        if comparison.keptTables.contains(SQLName(table.name)) {
            return "the table contains the version that the app recorded"
        }
        if let reason = kept[SQLName(table.name)] { return "the table is not in the schema, and \(reason)" }
        if comparison.policy == .withhold {
            return "the table is not in the schema, but destructiveChanges is set to withhold"
        }
        return nil
    }

    /// Returns whether a virtual table may store its data in a table: `NAME_…` for a virtual table `NAME`.
    ///
    /// Only the module knows which suffixes it uses, and it may not be loaded. The table is kept without a report,
    /// because the virtual table is reported.
    private func isShadow(_ table: TableState) -> Bool {
        let name = SQLName(table.name)
        return virtualPrefixes.contains { name.hasPrefix($0) }
    }

    /// Keeps the candidates on which something that stays depends, until nothing changes: a table that is kept may
    /// itself depend on another candidate.
    private mutating func keepNeeded(_ candidates: [TableState]) throws -> [TableState] {
        var dropped = candidates
        while let (index, reason) = firstNeeded(dropped) { try withhold(dropped.remove(at: index), reason) }
        return dropped
    }

    private func firstNeeded(_ dropped: [TableState]) -> (Int, String)? {
        let names = Set(dropped.map { SQLName($0.name) })
        let staying = Array(named.values) + unnamed.filter { !names.contains($0.key) }.map(\.value)
        let objects = objects.filter { $0.type == "view" || !names.contains(SQLName($0.table)) }
        for (index, table) in dropped.enumerated() {
            let name = SQLName(table.name)
            if let other = staying.first(where: { $0.facts.foreignKeys.contains { $0.parent == name } }) {
                return (index, "the table is not in the schema, but a foreign key of \(other.name) refers to it")
            }
            if let object = objects.first(where: { name.isMentioned(in: $0.sql) }) {
                return (index, "the table is not in the schema, but the \(object.type) \(object.name) refers to it")
            }
        }
        return nil
    }

    private mutating func withhold(_ table: TableState, _ reason: String) throws {
        let rows = table.isVirtual ? nil : try state.rowCount(of: table.name)
        withheld.append(Plan.Withheld(.dropTable, table: table.name, rows: rows, reason: reason))
    }
}
