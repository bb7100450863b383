internal import CipherSQLite

extension LaunchHooks {
    /// Adds the hooks for a kind of launch to a plan.
    func add(for kind: LaunchKind, to plan: inout Plan) {
        func operation(_ name: String, _ body: @escaping @Sendable (Connection) throws -> Void) -> Plan.Operation {
            Plan.Operation(
                .swift, object: name, reason: "the app registered this hook", step: name, action: .init(name, body))
        }
        switch kind {
        case .firstInstall:
            if let firstInstall { plan.operations.append(operation("at the first install", firstInstall)) }
        case .upgrade(let from, let to):
            if let upgrade {
                plan.operations.append(operation(Self.upgradeName) { try upgrade($0, from, to) })
            }
        case .unchanged:
            if let unchanged { plan.everyLaunch.append(operation("when the version is unchanged", unchanged)) }
        }
        if let everyLaunch { plan.everyLaunch.append(operation("at every launch", everyLaunch)) }
    }
}
