internal import CipherSQLite

/// The source of an app that declares its tables with their columns.
///
/// The declaration is compared with the database itself, whatever the version says, so that a database that does not
/// match its version is repaired too.
struct DeclaredTablesSource: SchemaSource {
    private let tables: [DeclaredTable]
    private let configuration: Configuration

    init(tables: [DeclaredTable], configuration: Configuration) {
        self.tables = tables
        self.configuration = configuration
    }

    func plan(for state: DatabaseState) throws -> Plan {
        let wanted = try DeclaredSchema(tables: tables, collations: configuration.collations).wanted()
        var kept: Set<SQLName> = []
        if case .table(let column) = configuration.recordedVersion { kept.insert(SQLName(column.table)) }
        let comparison = SchemaComparison(
            wanted: wanted, policy: configuration.destructiveChanges, keptTables: kept,
            rowsFollow: configuration.launch.upgrade != nil || configuration.launch.everyLaunch != nil
                || configuration.launch.unchanged != nil)
        var plan = Plan(from: state.recorded, to: configuration.version, fingerprint: wanted.fingerprint)
        plan.add(try comparison.changes(for: state))
        return plan
    }
}
