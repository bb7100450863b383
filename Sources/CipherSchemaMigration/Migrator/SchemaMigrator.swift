internal import CipherErrors
package import CipherHistory
internal import CipherSQLText
package import CipherSQLite

/// Migrates the schema of an open database to the version of the configuration.
///
/// The migrator does not depend on the kind of source: it requests a plan, applies it in one transaction, and records
/// the migration.
package struct SchemaMigrator {
    private let goal: SchemaGoal
    private let source: any SchemaSource
    private let policy: StepPolicy
    /// The file that the configuration comes from.
    private let file: String?

    /// Creates a migrator for a goal, with a source that describes how to reach it.
    ///
    /// - Parameters:
    ///   - destructiveSteps: The app's own steps that may lose rows or values, by their names.
    ///   - file: The file that the configuration comes from, for errors.
    package init(
        goal: SchemaGoal, source: any SchemaSource, destructiveSteps: Set<String> = [], file: String? = nil
    ) {
        self.goal = goal
        self.source = source
        policy = StepPolicy(destructiveChanges: goal.destructiveChanges, allowed: destructiveSteps)
        self.file = file
    }

    private var version: SchemaVersion { goal.version }
    private var launch: LaunchHooks { goal.launch }
    private var recordedVersion: RecordedVersion { goal.recordedVersion }

    // MARK: Planning

    /// Plans a migration without changing anything; a read-only connection suffices.
    ///
    /// - Parameters:
    ///   - recorded: The version that the app recorded, which is used as long as CipherStore has recorded none.
    ///   - isTried: Whether the plan is tried on a database with the same schema and no rows.
    /// - Throws: ``StoreError`` with the code `downgrade` if the database is newer, or with the code `migration` if the
    ///   target schema cannot be reached.
    package func plan(_ connection: Connection, recorded: SchemaVersion?, isTried: Bool = true) throws -> Plan {
        try planning(connection) {
            let plan = try completePlan(for: DatabaseState(of: connection) { recorded })
            if isTried { try PlanTrial(plan, on: connection, extensions: goal.extensions).run() }
            return plan
        }
    }

    /// Plans within a step limit, so that queries end even in a file with cyclic pages.
    private func planning(_ connection: Connection, _ body: () throws -> Plan) throws -> Plan {
        try reportingFailures(connection, "planning") {
            try connection.withinStepsForRows { try connection.transaction(.deferred, body) }
        }
    }

    /// Returns the source's plan, with the record of the version.
    private func completePlan(for state: DatabaseState) throws -> Plan {
        try checkVersion(state)
        try checkText(state)
        try checkStepNames(state)
        var plan = try source.plan(for: state)
        plan.isRecordOnly = plan.operations.isEmpty
        if source.comparesSchema {
            let strings = try CapturedStrings(plan, on: state.connection, goal.extensions)
            plan.findings += try strings?.findings() ?? []
        }
        if let warning = state.records.warning { plan.findings.append(Plan.Finding(.warning, message: warning)) }
        try PlanLint(policy: policy.destructiveChanges, path: state.connection.path).check(plan)
        let isBegun = !state.isAdopted || plan.operations.contains { $0.kind == .createTable }
        if state.isFresh(besides: recordedVersion.tables), isBegun, let recorded = state.recorded, recorded > .zero {
            plan.findings.append(
                Plan.Finding(
                    .warning,
                    message:
                        "version \(recorded) is recorded, but the database has no tables, so there was no data to "
                        + "preserve"))
        }
        if let record = try recordedVersion.operation(recording: version, in: state) { plan.operations.append(record) }
        launch.add(for: launchKind(state), to: &plan)
        if let stamp = stamp(for: state) { plan.operations.append(stamp) }
        return plan
    }

    /// Returns the operation that records the version; `nil` if it is already recorded.
    private func stamp(for state: DatabaseState) -> Plan.Operation? {
        let isReached = state.isAdopted && state.recorded == version
        if isReached && state.records.userVersionToSet == nil { return nil }
        let history = state.hasHistory ? [] : [HistoryTable.createSQL]
        // A version of several numbers is recorded by the entry in the history, and user_version is not changed.
        let record = version.wholeNumber.map { ["PRAGMA user_version = \($0)"] } ?? []
        return Plan.Operation(
            .stamp, sql: history + record,
            reason: state.records.difference
                ?? (state.isAdopted
                    ? "the database has version \(state.recorded ?? .zero)"
                    : "CipherStore has not recorded a version yet"))
    }

    /// Refuses a schema whose text is not valid UTF-8: a comparison would read a name in a repaired form, and write the
    /// object again under another name.
    private func checkText(_ state: DatabaseState) throws {
        guard source.comparesSchema, let entry = state.entryThatIsNoText else { return }
        throw StoreError(
            .migration, path: state.connection.path,
            "the name or the definition of schema entry \(entry) is not valid UTF-8, so the schema cannot be compared",
            advice: "rename the entry, or remove the schema source from the configuration",
            changed: .nothing)
    }

    private func checkStepNames(_ state: DatabaseState) throws {
        guard !policy.allowed.isEmpty else { return }
        let names = source.stepNames + (launch.upgrade == nil ? [] : [LaunchHooks.upgradeName])
        guard let unknown = policy.allowed.subtracting(names).min() else { return }
        throw StoreError(
            .configuration, path: state.connection.path,
            "destructiveSteps lists \(unknown), but no step has this name",
            advice: names.isEmpty
                ? "remove the name: there are no steps" : "the steps are \(names.joined(separator: ", "))"
        )
    }

    private func checkVersion(_ state: DatabaseState) throws {
        guard (0...Int(Int32.max)).contains(version.wholeNumber ?? 0) else {
            throw StoreError(
                .configuration, path: state.connection.path,
                "\(version) cannot be a schema version: user_version can store only numbers from 0 to \(Int32.max)",
                advice: "choose another dbVersion")
        }
        if let recorded = state.recorded, recorded > version {
            throw StoreError.downgrade(from: recorded, state.records, to: version, path: state.connection.path)
        }
    }

    // MARK: Migrating

    /// Plans, applies and records a migration, all in one transaction; writes nothing if there is nothing to do.
    ///
    /// - Parameters:
    ///   - finishing: Changes the migrated database in the same transaction; it is also called if there is nothing to
    ///     migrate.
    ///   - recorded: Returns the version that the app recorded. It is called only as long as CipherStore has recorded
    ///     no version, and called again after the write lock is taken, because another process may have been faster.
    /// - Throws: ``StoreError``; the database is then unchanged.
    package func migrate(
        _ connection: Connection, finishing: (Connection) throws -> Void = { _ in },
        recorded: () throws -> SchemaVersion?
    ) throws -> MigrationReport {
        guard !connection.isInTransaction else {
            throw StoreError(
                .migration, path: connection.path, "a schema migration cannot begin inside a transaction",
                advice: "end the transaction first")
        }
        // The first plan is made without the write lock, because most launches have nothing to do and need not wait for
        // other connections.
        let preview = try planning(connection) {
            try completePlan(for: DatabaseState(of: connection, countsRows: false, recorded: recorded))
        }
        guard !preview.isEmpty || !preview.everyLaunch.isEmpty else {
            try finishing(connection)
            return MigrationReport(preview, event: nil)
        }
        return try applying(connection) {
            let (plan, event) = try applyLocked(connection, recorded)
            try finishing(connection)
            return MigrationReport(plan, event: event)
        }
    }

    /// Performs the migration like ``migrate(_:recorded:)``, up to the app's own Swift code, on a database that is
    /// discarded afterwards.
    ///
    /// - Returns: The plan, with the effects of the app's own SQL on the rows.
    /// - Throws: The same errors as ``migrate(_:recorded:)``.
    package func rehearse(_ connection: Connection, recorded: () throws -> SchemaVersion?) throws -> Plan {
        var plan = try applying(connection) { try applyLocked(connection, recorded, isRehearsal: true).plan }
        if let swift = plan.firstSwift {
            plan.notes.append(
                "the migration was rehearsed only up to the step \"\(swift)\", because Swift code is not rehearsed")
        } else {
            plan.isRehearsed = true
        }
        return plan
    }

    private func applying<Result>(_ connection: Connection, _ body: () throws -> Result) throws -> Result {
        try reportingFailures(connection, "the transaction") {
            try SchemaChangeSettings(connection).during {
                try connection.transaction(.immediate) { try connection.sortingInFiles(body) }
            }
        }
    }

    /// Plans and applies a migration under the write lock.
    private func applyLocked(
        _ connection: Connection, _ recorded: () throws -> SchemaVersion?, isRehearsal: Bool = false
    ) throws -> (plan: Plan, event: HistoryEvent?) {
        var (state, plan) = try connection.withinStepsForRows {
            let state = try DatabaseState(of: connection, recorded: recorded)
            return (state, try completePlan(for: state))
        }
        let isNew = event(for: state) == .created
        let executor = PlanExecutor(
            connection: connection, policy: policy,
            counter: isNew ? nil : StepEffectCounter(state, countsAdditions: isRehearsal),
            kept: KeptObjects(of: state, under: plan), countsAll: isRehearsal)
        if isRehearsal, let swift = plan.firstSwift {
            // Effects of Swift code elsewhere could not be undone.
            try plan.apply(with: executor, endingBefore: swift)
            return (plan, nil)
        }
        guard !plan.isEmpty else {
            try plan.apply(with: executor)
            return (plan, nil)
        }
        let (violations, dangling) = try connection.withinStepsForRows {
            (
                try ForeignKeyViolations(in: connection, tables: state.tables),
                try DanglingObjects(in: connection, state)
            )
        }
        try plan.apply(with: executor)
        // If other code changes the records at every launch, the history must not grow at every launch.
        if plan.isRecordOnly, state.isAdopted, state.recorded == version { return (plan, nil) }
        let event = event(for: state)
        try HistoryTable.append(
            event, from: state.recorded, to: version, checksum: plan.fingerprint, detail: detail(of: plan),
            record: try record(connection).json(), in: connection)
        try connection.withinStepsForRows { try verify(connection, plan.origins, against: violations, dangling) }
        return (plan, event)
    }

    /// Returns the current schema, and the steps that led to it.
    private func record(_ connection: Connection) throws -> SchemaRecord {
        SchemaRecord(
            schema: try SchemaDescription(of: connection),
            steps: try source.recordedSteps.filter { $0.version <= version })
    }

    /// Plans again, and throws if an operation is still pending.
    private func verify(
        _ connection: Connection, _ origins: [SQLName: Plan.Origin], against violations: ForeignKeyViolations,
        _ dangling: DanglingObjects
    ) throws {
        let after = try DatabaseState(of: connection, countsRows: false) { nil }
        try ForeignKeyViolations(in: connection, tables: after.tables)
            .requireNoneBeyond(violations, origins: origins, path: connection.path)
        try DanglingObjects(in: connection, after)
            .requireNoneBeyond(dangling, origins: origins, path: connection.path)
        let rest = try completePlan(for: after)
        guard let left = rest.operations.first(where: { $0.trial == nil }) else { return }
        throw StoreError.unreachable(
            connection.path, "after the migration, the operation \"\(left.title)\" was still pending", correct: .schema)
    }

    private func event(for state: DatabaseState) -> HistoryEvent {
        if state.isAdopted { return .migrated }
        // A recorded version without any table is not a fresh install: tables have been lost.
        return state.isFresh(besides: recordedVersion.tables) && state.recorded ?? .zero == .zero ? .created : .adopted
    }

    private func launchKind(_ state: DatabaseState) -> LaunchKind {
        if event(for: state) == .created { return .firstInstall }
        return state.recorded == version ? .unchanged : .upgrade(from: state.recorded, to: version)
    }

    private func detail(of plan: Plan) -> String {
        (plan.operations.map(\.title) + plan.notes + plan.findings.warnings).joined(separator: "; ")
    }

    // MARK: Setup and errors

    private func reportingFailures<Result>(
        _ connection: Connection, _ action: String, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error, path: connection.path, during: .migration(action))
        } catch let error as StoreError where error.code == .configuration && error.path == nil {
            throw error.at(file)
        }
    }
}
