extension Plan {
    /// Applies the operations, and records their effects in the plan.
    ///
    /// - Parameter swift: The name of a Swift step of the app; neither this step nor any later operation is run.
    mutating func apply(with executor: PlanExecutor, endingBefore swift: String? = nil) throws {
        func part(_ operations: [Operation]) -> Int {
            operations.firstIndex { $0.kind == .swift && $0.subject == swift } ?? operations.count
        }
        let end = part(operations)
        let migrated = try executor.apply(Array(operations[..<end]), isAll: end == operations.count)
        operations.replaceSubrange(..<end, with: migrated.operations)
        findings += migrated.findings
        guard end == operations.count else { return }
        let last = part(everyLaunch)
        let launched = try executor.apply(Array(everyLaunch[..<last]), isJudged: false)
        everyLaunch.replaceSubrange(..<last, with: launched.operations)
        findings += launched.findings
    }
}
