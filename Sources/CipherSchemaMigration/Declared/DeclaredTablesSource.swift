internal import CipherCatalog
internal import CipherSQLText

/// The source of an app that declares its tables with their columns.
///
/// The declaration is compared with the database itself, whatever the recorded version, so a database that does not
/// match its version is also repaired.
package struct DeclaredTablesSource: SchemaSource {
    private let tables: [DeclaredTable]
    private let goal: SchemaGoal

    package init(tables: [DeclaredTable], goal: SchemaGoal) {
        self.tables = tables
        self.goal = goal
    }

    package func plan(for state: DatabaseState) throws -> Plan {
        let wanted = try DeclaredSchema(tables: tables, extensions: goal.extensions).wanted()
        let comparison = SchemaComparison(
            wanted: wanted, policy: goal.destructiveChanges, keptTables: goal.recordedVersion.tables,
            rowsFollow: goal.hasHooksOnRows)
        var plan = Plan(from: state.recorded, to: goal.version, fingerprint: wanted.fingerprint)
        plan.add(try comparison.changes(for: state))
        if let note = strangeness(of: state) { plan.notes.append(note) }
        return plan
    }

    /// Returns a note if a database has tables but none of the declared ones, because it may belong to another app.
    private func strangeness(of state: DatabaseState) -> String? {
        let found = state.tables.filter { !$0.name.hasPrefix("cipherstore_") }
        guard let first = found.first, !tables.isEmpty else { return nil }
        let declared = Set((tables.map(\.name) + tables.compactMap(\.renamedFrom)).map { SQLName($0) })
        guard !found.contains(where: { declared.contains(SQLName($0.name)) }) else { return nil }
        let others =
            switch found.count {
            case 1: ""
            case 2: " and 1 other table"
            default: " and \(found.count - 1) other tables"
            }
        return "the database contains none of the declared tables, but it contains \(first.name)\(others): check the "
            + "path"
    }
}
