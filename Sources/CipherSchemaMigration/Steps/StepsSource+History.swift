extension StepsSource {
    package var stepNames: [String] { steps.stepNames }

    /// The updates; Swift code is identified only by its name.
    ///
    /// The baseline is omitted, because it is unknown which baseline created an old database.
    package var recordedSteps: [SchemaStep] {
        steps.ordered.map { update in
            switch update.work {
            case .sql(let texts): SchemaStep(version: update.version, name: update.name, sql: texts)
            case .swift: SchemaStep(version: update.version, name: update.name, checksum: "swift")
            }
        }
    }
}
