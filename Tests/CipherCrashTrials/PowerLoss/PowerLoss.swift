/// Records one run of each operation, and builds what a disk may contain after a power loss at each call.
struct PowerLoss: Sendable {
    static let usage = "powerloss [--quick] [SCENARIO…]\nscenarios: \(names.joined(separator: " "))"
    private static let names = Scenario.all.map(\.name) + [WrittenStore.name]
    /// How many losses of one scenario are reported.
    private static let toldLosses = 20

    private let harness: Harness
    private let policy: Policy
    private let scenarios: [String]
    private let report = Report("powerloss", widths: [20, -8, -8, -8, -8, -8])

    init(_ arguments: some Sequence<String>, in session: Session) throws {
        let options = try Options(arguments, usage: Self.usage, valued: [], flags: ["--quick"], words: Self.names)
        policy = options.has("--quick") ? .quick : .exhaustive
        scenarios = options.words.isEmpty ? Self.names : options.words
        harness = try Harness(in: session, isRepeatable: false)
    }

    /// Returns whether nothing was lost.
    func run() throws -> Bool {
        report.row("scenario", "points", "states", "old", "new", "losses")
        // Scenarios with the most states, which are the last ones, come first.
        try Workers.run(scenarios.reversed(), in: harness.session) { try run($0, $1) }
        return try report.conclude { totals in
            "\(totals.losses) losses in \(totals.states) states behind \(totals.points) calls"
        }
    }

    private func run(_ name: String, _ worker: Worker) throws {
        let recorded: any Recorded
        if let scenario = Scenario.all.first(where: { $0.name == name }) {
            recorded = try Trial(harness, scenario, worker)
        } else {
            recorded = try WrittenStore(harness.subject, worker)
        }
        let outcome = try Experiment(recorded: recorded).run(policy)
        let numbers = [outcome.points, outcome.states, outcome.old, outcome.new, outcome.losses.count]
        report.row([name] + numbers.map(String.init))
        report.complain(name, outcome.losses, telling: Self.toldLosses)
        report.add(points: outcome.points, states: outcome.states)
    }
}
