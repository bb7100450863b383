extension StepsSource {
    package var stepNames: [String] { steps.stepNames }

    /// The updates, of which Swift is known by its name alone.
    ///
    /// Not the baseline: which one an old database was created by no one knows.
    package var recordedSteps: [SchemaStep] {
        steps.ordered.map { update in
            switch update.work {
            case .sql(let texts): SchemaStep(version: update.version, name: update.name, sql: texts)
            case .swift: SchemaStep(version: update.version, name: update.name, checksum: "swift")
            }
        }
    }
}
