internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

/// Creates one plan from steps.
struct StepPlanning {
    private let stages: [StepStage]
    /// The number of stages that the database has already passed.
    private let past: Int
    private let everyLaunch: [PlacedStatement]
    /// The places of the statements that may run again.
    private let repeatable: Set<String>
    private let state: DatabaseState
    private let extensions: SQLExtensions
    private let stepSchemas: StepSchemas
    /// The schema of the database, as the plan would change it.
    private let rehearsal: ScratchDatabase
    /// The latest snapshot of ``rehearsal``; the next snapshot only reads what has changed since.
    private var latest = SchemaSnapshot()
    private var uniqueness: StepUniqueness

    private(set) var operations: [Plan.Operation] = []
    private(set) var findings: [Plan.Finding] = []
    private(set) var notes: [String] = []

    init(
        stages: [StepStage], past: Int, everyLaunch: [PlacedStatement], repeatable: Set<String>,
        state: DatabaseState, extensions: SQLExtensions
    ) throws {
        self.stages = stages
        self.past = past
        self.everyLaunch = everyLaunch
        self.repeatable = repeatable
        self.state = state
        self.extensions = extensions
        stepSchemas = try StepSchemas(
            stages, everyLaunch: everyLaunch, in: ScratchDatabase(extensions, about: state.connection.path))
        rehearsal = try ScratchDatabase(after: state.connection, extensions)
        uniqueness = StepUniqueness(state)
    }

    mutating func run() throws {
        if !state.isAdopted { try repair() }
        // After Swift code of the app, the schema is unknown.
        var isKnown = true
        for (index, stage) in stages.enumerated().dropFirst(past) {
            if let statements = stage.statements {
                try plan(stage, statements, at: index, isKnown: isKnown)
            } else {
                isKnown = false
                uniqueness.note(stage.name, nil)
                planSwift(stage)
            }
        }
        if isKnown { for statement in everyLaunch { try rehearse(statement) } }
    }

    // MARK: Leftovers of the older system

    private mutating func repair() throws {
        guard past > 0 else { return }
        guard stepSchemas.stages.count >= past else {
            notes.append(
                "the database was not compared with the schema of its recorded version, because one or more of the "
                    + "steps up to that version are written in Swift")
            return
        }
        let repair = StepRepair(
            version: state.recorded ?? .zero, past: stepSchemas.stages[..<past].flatMap { $0 },
            pending: Array(stepSchemas.stages[past...]), triggers: state.objects.filter { $0.type == "trigger" },
            scratch: try ScratchDatabase(extensions), path: state.connection.path)
        let found = try look()
        for leftover in repair.leftovers(in: found) where !repair.isDropped(leftover, in: found) {
            try noteLeftover(leftover)
        }
        let made = try repair.repair(of: found)
        findings += made.findings
        for operation in made.operations {
            for sql in operation.sql {
                uniqueness.note(sql, try rehearse(.init(place: operation.title, sql: sql)))
            }
            operations.append(operation)
        }
        guard !operations.isEmpty else { return }
        notes.append(
            "the database does not match the schema of its recorded version: "
                + (operations.count == 1 ? "1 operation corrects this" : "\(operations.count) operations correct this"))
    }

    /// Reports a leftover, because the app cannot reach rows that a step failed to move.
    private mutating func noteLeftover(_ leftover: SchemaSnapshot.Item) throws {
        let table = leftover.kind == .table ? state.tables.first { SQLName($0.name) == leftover.name } : nil
        guard let table, !table.isVirtual, try state.holdsRows(table.name) else {
            notes.append("the \(leftover), which a step should have removed, still exists and is kept")
            return
        }
        let rows = try state.countedRows(of: table.name)
        findings.append(
            Plan.Finding(
                .warning, table: table.name, count: rows,
                message: "the \(leftover), which a step should have removed, still contains \(rows) "
                    + "row\(rows == 1 ? "" : "s") and is kept"))
    }

    // MARK: Steps

    private mutating func plan(
        _ stage: StepStage, _ statements: [PlacedStatement], at index: Int, isKnown: Bool
    ) throws {
        var skipped: [Int: String] = [:]
        if isKnown, !state.isAdopted, index < stepSchemas.stages.count {
            let step = HalfDoneStep(
                name: stage.name, passages: stepSchemas.stages[index], path: state.connection.path,
                canRun: rehearsal.accepts, evidence: InsertEvidence(rehearsal: rehearsal, state: state),
                repeatable: repeatable, earlier: Set(stepSchemas.stages[..<index].joined().map(\.statement.sql)))
            skipped = try step.answer(for: look()).skipped
        }
        for (number, statement) in statements.enumerated() {
            if let reason = skipped[number] {
                notes.append("\(statement.place) is skipped: \(reason)")
                continue
            }
            let traits = isKnown ? try rehearse(statement) : nil
            if traits?.isDefinition == true { findings += try uniqueness.findings(in: rehearsal) }
            if traits?.isDefinition == false, let complaint = try rehearsal.nameTakenForText(in: statement) {
                findings.append(
                    Plan.Finding(
                        .warning,
                        message:
                            "\(statement.place) contains a name in double quotes that SQLite treats as text: "
                            + "\(complaint)"
                    ))
            }
            uniqueness.note(statement.sql, traits)
            try StepGuard.checkText(statement, path: state.connection.path)
            operations.append(
                Plan.Operation(
                    .sql, object: statement.place, sql: [statement.sql], reason: reason(stage),
                    risk: traits?.deletes.isEmpty == false ? .losesData : .none, step: stage.name))
        }
    }

    private mutating func planSwift(_ stage: StepStage) {
        guard case .swift(let body) = stage.work else { return }
        operations.append(
            Plan.Operation(
                .swift, object: stage.name, reason: reason(stage), step: stage.name, action: .init(stage.name, body)))
    }

    private func reason(_ stage: StepStage) -> String {
        guard let version = stage.version else { return "the database is new" }
        return "the step leads to version \(version)"
    }

    private mutating func look() throws -> SchemaSnapshot {
        latest = try rehearsal.snapshot(after: latest)
        return latest
    }

    /// Tries a statement.
    ///
    /// - Returns: `nil` if the statement requires the app's own modules or functions.
    @discardableResult
    private func rehearse(_ statement: PlacedStatement) throws -> StatementTraits? {
        do {
            return try rehearsal.run(statement)
        } catch let error as StoreError where !rehearsal.isComplete && error.underlying != nil {
            return nil
        }
    }
}
