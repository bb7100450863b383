internal import CipherErrors
internal import CipherSQLite

/// Runs the operations of a plan inside the caller's transaction.
struct PlanExecutor {
    let connection: Connection
    /// The policy for the losses that the app's own steps may cause.
    let policy: StepPolicy
    /// The counter of the steps' effects; `nil` if the database contains nothing that a user could lose.
    let counter: StepEffectCounter?
    /// The objects that must still exist when the first of the app's own steps runs, or else at the end.
    var kept: KeptObjects?
    /// Whether effects that steps may have in any case are counted as well.
    var countsAll = false

    /// Runs the operations.
    ///
    /// - Parameters:
    ///   - isJudged: Whether steps may be refused.
    ///   - isAll: Whether these are all the remaining operations of the migration.
    /// - Returns: The operations with their effects, and what was lost.
    /// - Throws: ``StoreError`` that names the operation, or the losses that steps are not allowed to cause; the
    ///   caller rolls back.
    func apply(
        _ operations: [Plan.Operation], isJudged: Bool = true, isAll: Bool = true
    ) throws -> (operations: [Plan.Operation], findings: [Plan.Finding]) {
        // If SQLite ended the transaction, every later statement would be committed by itself.
        let required = connection.requiresTransaction
        connection.requiresTransaction = true
        defer { connection.requiresTransaction = required }
        // A step that is allowed to lose rows may also copy rows that the next step removes.
        let isCounted = countsAll || isJudged && operations.contains { $0.step.map(policy.judges) == true }
        var applied: [Plan.Operation] = []
        var findings: [Plan.Finding] = []
        var refused: [(step: String, loss: Plan.Finding)] = []
        var unchecked = isJudged ? kept : nil
        func checkObjects(before place: Int) throws {
            try connection.withinStepsForRows {
                try unchecked?.requireAll(in: connection, before: operations[place...])
            }
            unchecked = nil
        }
        for (place, operation) in operations.enumerated() {
            if operation.kind == .sql || operation.kind == .swift { try checkObjects(before: place) }
            // Effects of Swift code outside the database cannot be undone.
            if operation.kind == .swift { try policy.check(refused, connection.path) }
            var operation = operation
            do {
                if let refusal = try refusal(of: operation) {
                    findings.append(refusal)
                    continue
                }
                let outcome = try run(operation, by: isCounted ? counter : nil)
                try checkTransaction(operation)
                if let outcome { operation.take(outcome) }
                findings += outcome?.losses ?? []
                if isJudged, let step = operation.step {
                    refused += policy.refusing(outcome?.losses ?? [], of: step).map { (step, $0) }
                }
            } catch let error as DatabaseError {
                let correction: StoreError.Correction = operation.kind == .swift ? .step : .schemaOrRows
                throw StoreError(
                    error, path: connection.path,
                    during: .migration(operation.titleInSentence, correct: correction))
            }
            applied.append(operation)
        }
        try checkObjects(before: operations.endIndex)
        if isCounted, isJudged, isAll, let counter {
            for (step, loss) in try connection.withinStepsForRows({ try counter.leftovers() }) {
                findings.append(loss)
                refused += step.map { step in policy.refusing([loss], of: step).map { (step, $0) } } ?? []
            }
        }
        try policy.check(refused, connection.path)
        return (applied, findings)
    }

    private func checkTransaction(_ operation: Plan.Operation) throws {
        guard !connection.isInTransaction else { return }
        throw StoreError(
            .migration, path: connection.path, "\(operation.title) ended the migration's transaction",
            advice: "remove COMMIT and ROLLBACK from the step, and check the database: earlier statements may have "
                + "been committed")
    }

    /// Tries an operation that the migration can do without, and undoes the trial.
    ///
    /// - Returns: A warning if the database does not accept the operation.
    private func refusal(of operation: Plan.Operation) throws -> Plan.Finding? {
        struct Undo: Error {}
        guard let trial = operation.trial else { return nil }
        let reason: String
        do {
            try connection.withinStepsForRows {
                try connection.savepoint {
                    try trial.body(connection)
                    throw Undo()
                }
            }
            return nil
        } catch is Undo {
            return nil
        } catch let error as DatabaseError where connection.isInTransaction && error.isOfStatement {
            reason = "\(error.message) (SQLite code \(error.extendedCode))"
        } catch let error as StoreError {
            reason = error.detail
        }
        return .kept(trial.name, table: operation.table ?? "", because: reason)
    }

    /// Runs an operation.
    ///
    /// CipherStore's own operations are step-limited, so they end even in a file with cyclic pages; only the app knows
    /// how long one of its own steps may take.
    private func run(_ operation: Plan.Operation, by counter: StepEffectCounter?) throws -> StepEffectCounter.Outcome? {
        guard operation.kind == .sql || operation.kind == .swift else {
            try connection.withinStepsForRows { try keepingRows(of: operation) { try runFreely(operation) } }
            return nil
        }
        func run(
            _ note: @escaping (StatementAction) -> Void, _ compiled: (([UInt8]) throws -> Void)?
        ) throws {
            try StepGuard(allowsSavepoints: operation.kind == .swift, observe: note)
                .guarding(connection, operation.place, compiled: compiled) { try runFreely(operation) }
        }
        guard let counter else {
            try run({ _ in }, nil)
            return nil
        }
        return try counter.observing(operation, run)
    }

    private func runFreely(_ operation: Plan.Operation) throws {
        for sql in operation.sql { try connection.execute(SQL(text: sql)) }
        guard let action = operation.action else { return }
        do {
            try connection.lend(action.body)
        } catch let error as DatabaseError {
            throw error
        } catch let error as StoreError {
            throw error
        } catch {
            // Only the type is reported, because the description of an app's error may contain values.
            throw StoreError.unreachable(
                connection.path,
                "the schema migration failed during \(operation.titleInSentence): the app's code threw an error of type "
                    + "\(type(of: error))",
                correct: .step)
        }
    }

    /// Checks that a rebuilt table has as many rows as before.
    private func keepingRows(of operation: Plan.Operation, _ body: () throws -> Void) throws {
        guard operation.kind == .rebuildTable, let table = operation.table else { return try body() }
        // For `count(*)`, SQLite walks the b-tree without calling the progress handler.
        let count: SQL = "SELECT count(1) FROM main.\(identifier: table)"
        let before = try connection.value(Int.self, count)
        try body()
        let after = try connection.value(Int.self, count)
        guard before == after else {
            throw StoreError(
                .migration, path: connection.path,
                "\(operation.title) would change the number of rows from \(before ?? 0) to \(after ?? 0)",
                advice: "this is a bug: please report it with this message and the schema", changed: .nothing)
        }
    }
}

extension DatabaseError {
    /// Whether the schema or the values do not allow the statement, while the database itself can be used.
    fileprivate var isOfStatement: Bool {
        isConstraintViolation || [DatabaseError.generic, DatabaseError.mismatch].contains(code)
    }
}

extension Plan.Operation {
    /// Adopts the counted effects, which describe the risk better than the statement's text.
    fileprivate mutating func take(_ outcome: StepEffectCounter.Outcome) {
        effects = outcome.effects
        let severities = Set(outcome.losses.map(\.severity))
        risk = severities.contains(.losesData) ? .losesData : severities.isEmpty ? .none : .removesSchema
    }
}
