internal import CipherErrors

/// Judges a plan by its consequences for the values in the database.
struct PlanLint {
    let policy: DestructiveChanges
    let path: String

    /// Checks the findings of a plan.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if the values do not allow the plan, or with the code
    ///   `destructiveChanges` if the policy does not allow it. The message lists all findings that have to be
    ///   corrected.
    func check(_ plan: Plan) throws {
        let impossible = plan.findings.filter { $0.severity == .impossible }
        guard impossible.isEmpty else {
            throw StoreError.unreachable(
                path, "the target schema cannot be reached: \(list(impossible))", correct: .schemaOrRows)
        }
        let destructive = plan.findings.filter(\.isDestructive)
        guard policy == .refuse, !destructive.isEmpty else { return }
        throw StoreError(
            .destructiveChanges, path: path,
            "destructiveChanges is set to refuse, but the schema migration would lose data: \(list(destructive))",
            advice: "set destructiveChanges to withhold or allow, or correct the schema", changed: .nothing)
    }

    private func list(_ findings: [Plan.Finding]) -> String {
        findings.map(\.message).joined(separator: "; ")
    }
}
