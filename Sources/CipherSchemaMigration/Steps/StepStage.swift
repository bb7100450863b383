internal import CipherHistory

/// A stage on the way from an empty database to the app's version: the baseline or an update.
struct StepStage {
    let name: String
    /// The version of the schema after the stage; `nil` for the baseline.
    let version: SchemaVersion?
    /// The statements; `nil` for Swift code, whose effects are not known in advance.
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
