internal import CipherHistory

/// A part of the way from nothing to the app's version: the baseline or an update.
struct StepStage {
    let name: String
    /// The version that the schema has afterwards; `nil` for the baseline.
    let version: SchemaVersion?
    /// `nil` for Swift, of which no one can tell beforehand what it does.
    let statements: [PlacedStatement]?
    let work: MigrationSteps.Work

    init(name: String, version: SchemaVersion?, work: MigrationSteps.Work) {
        self.name = name
        self.version = version
        self.work = work
        if case .sql(let texts) = work {
            statements = PlacedStatement.statements(of: texts, in: name)
        } else {
            statements = nil
        }
    }
}
