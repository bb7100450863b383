internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

/// The schema source for an app that changes its schema in steps.
///
/// Every statement is first tried on private databases: one that began empty and ran every step, and one with the
/// schema of the real database. Thus a plan reports faults in a step, and steps that the older system left half done,
/// without changing anything.
package struct StepsSource: SchemaSource {
    let steps: MigrationSteps
    let version: SchemaVersion
    let extensions: SQLExtensions
    /// The tables that contain the app's own record of its version.
    let recordTables: Set<SQLName>

    package init(_ steps: MigrationSteps, goal: SchemaGoal) {
        self.steps = steps
        version = goal.version
        extensions = goal.extensions
        recordTables = goal.recordedVersion.tables
    }

    package func plan(for state: DatabaseState) throws -> Plan {
        try steps.check(leadingTo: version)
        var plan = Plan(from: state.recorded, to: version, fingerprint: fingerprint)
        let everyLaunch = PlacedStatement.statements(of: steps.everyLaunch, in: steps.names.everyLaunch)
        plan.everyLaunch = everyLaunch.map {
            Plan.Operation(
                .sql, object: $0.place, sql: [$0.sql], reason: "the statement runs at every launch", step: $0.step)
        }
        guard !state.isAdopted || state.recorded != version else { return plan }
        let stages =
            [StepStage(name: steps.names.baseline, version: nil, work: steps.baseline)]
            + steps.ordered.map { StepStage(name: $0.name, version: $0.version, work: $0.work) }
        let past = try from(state).map { from in stages.filter { $0.version ?? .zero <= from }.count } ?? 0
        var planning = try StepPlanning(
            stages: stages, past: past, everyLaunch: everyLaunch, repeatable: steps.repeatable, state: state,
            extensions: extensions)
        try planning.run()
        plan.operations = planning.operations
        plan.findings = planning.findings
        plan.notes = planning.notes
        return plan
    }

    /// Returns the version that the steps continue from; `nil` for a new database.
    private func from(_ state: DatabaseState) throws -> SchemaVersion? {
        if let recorded = state.recorded, recorded > .zero { return recorded }
        let own = state.tables.filter {
            !SQLName($0.name).isOfCipherStore && !recordTables.contains(SQLName($0.name))
        }
        guard let table = own.first else { return nil }
        throw StoreError.unknownVersion(
            state.connection.path,
            "the database contains tables, such as \(table.name), but no recorded version",
            first: "set recordedVersion to the place where the version is recorded")
    }

    private var fingerprint: String {
        var checksum = Checksum()
        func add(_ name: String, _ work: MigrationSteps.Work) {
            checksum.add(name)
            guard case .sql(let texts) = work else { return checksum.add("swift") }
            for text in texts { checksum.add(text) }
            checksum.add("")
        }
        add(steps.names.baseline, steps.baseline)
        for update in steps.ordered {
            checksum.add(update.version.description)
            add(update.name, update.work)
        }
        return checksum.text
    }
}
