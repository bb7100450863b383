internal import CipherErrors

/// The policy that decides which of the app's own steps may lose data or parts of the schema.
struct StepPolicy {
    let destructiveChanges: DestructiveChanges
    /// The names of the steps that may cause losses.
    let allowed: Set<String>

    /// Returns whether a step's losses are judged.
    func judges(_ step: String) -> Bool { destructiveChanges != .allow && !allowed.contains(step) }

    /// Returns the losses that the step is not allowed to cause.
    func refusing(_ losses: [Plan.Finding], of step: String) -> [Plan.Finding] {
        guard judges(step) else { return [] }
        return losses.filter { $0.severity == .losesData || destructiveChanges == .refuse && $0.isDestructive }
    }

    /// Throws if steps were refused.
    ///
    /// - Throws: ``StoreError`` with the code `destructiveChanges`, which lists all losses with their numbers.
    func check(_ refused: [(step: String, loss: Plan.Finding)], _ path: String) throws {
        guard !refused.isEmpty else { return }
        let steps = refused.map(\.step).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        throw StoreError(
            .destructiveChanges, path: path,
            "destructiveChanges is set to \(destructiveChanges.rawValue), but the app's own migration steps would lose "
                + "data: "
                + refused.map(\.loss.message).joined(separator: "; "),
            advice:
                "correct the steps, or list them in destructiveSteps if the loss is intentional: "
                + steps.joined(separator: ", "),
            changed: .nothing)
    }
}
