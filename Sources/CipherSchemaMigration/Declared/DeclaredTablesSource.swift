/// The source of an app that declares its tables with their columns.
///
/// The declaration is compared with the database itself, whatever the version says, so that a database that does not
/// match its version is repaired too.
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
        return plan
    }
}
