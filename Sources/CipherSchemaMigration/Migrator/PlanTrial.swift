internal import CipherErrors
internal import CipherSQLite

/// Tries a plan on a scratch database with the same schema and no rows.
///
/// Before a legacy file is encrypted, this finds, for example, a rename that would break a trigger.
struct PlanTrial {
    private let plan: Plan
    private let source: Connection
    private let extensions: SQLExtensions

    init(_ plan: Plan, on source: Connection, extensions: SQLExtensions) {
        self.plan = plan
        self.source = source
        self.extensions = extensions
    }

    /// Runs the trial.
    ///
    /// - Throws: ``StoreError`` with the code `migration`, naming the operation that would fail, or the view or trigger
    ///   that would no longer work.
    func run() throws {
        guard plan.operations.contains(where: { $0.kind != .stamp }) else { return }
        let scratch = try ScratchDatabase(after: source, extensions)
        // A schema that needs the app's own modules or functions can only be tried on the real database.
        guard scratch.isComplete else { return }
        let before = try scratch.dangling()
        try SchemaChangeSettings(scratch.connection).during {
            try scratch.connection.transaction(.immediate) {
                // After the app's Swift code has run, the schema is unknown.
                for operation in plan.operations.prefix(while: { $0.kind != .swift }) where operation.trial == nil {
                    try apply(operation, in: scratch)
                }
            }
        }
        guard !plan.operations.contains(where: { $0.kind == .swift }) else { return }
        try scratch.dangling().requireNoneBeyond(before, origins: plan.origins, path: source.path)
    }

    private func apply(_ operation: Plan.Operation, in scratch: ScratchDatabase) throws {
        do {
            switch operation.kind {
            // The rows are in another database, and the record is CipherStore's own.
            case .copyRows, .stamp, .swift: return
            case .sql:
                for sql in operation.sql { _ = try scratch.run(.init(place: operation.subject, sql: sql)) }
            default:
                for sql in operation.sql { try scratch.connection.execute(SQL(text: sql)) }
            }
        } catch let error as DatabaseError {
            throw StoreError(
                .migration, path: source.path, "the target schema cannot be reached: \(operation.title) would fail",
                advice: "correct the schema or its renames", changed: .nothing, underlying: error)
        }
    }
}
