/// Makes each call of each operation fail once, in a separate run.
struct Faults: Sendable {
    static let usage = """
        faults [--seconds N] [--operation NAME] [--call NAME] [--step N] [KIND…]
        kinds: \(Fault.allCases.map(\.rawValue).joined(separator: " "))
        """

    private struct Series {
        let scenario: Scenario
        let fault: Fault
        let call: String
    }

    private let harness: Harness
    private let deadline: Deadline
    private let step: Int
    private let series: [Series]
    private let report = Report("faults", widths: [16, 8, 11, -11, -9, -9, -9])

    init(_ arguments: some Sequence<String>, in session: Session) throws {
        let options = try Options(
            arguments, usage: Self.usage, valued: ["--seconds", "--operation", "--call", "--step"],
            words: Fault.allCases.map(\.rawValue))
        deadline = Deadline(seconds: try options.number("--seconds") ?? 3_600)
        step = try options.number("--step") ?? 40
        let scenarios = try Scenario.named(options["--operation"])
        let faults = options.words.isEmpty ? Fault.allCases : options.words.compactMap(Fault.init)
        series = faults.flatMap { fault in
            scenarios.flatMap { scenario in
                fault.calls.filter { options["--call"] == nil || options["--call"] == $0 }
                    .map { Series(scenario: scenario, fault: fault, call: $0) }
            }
        }
        harness = try Harness(in: session, isRepeatable: true)
    }

    /// Returns whether nothing was lost.
    func run() throws -> Bool {
        report.row("operation", "fault", "call", "points", "succeeded", "refused", "losses")
        try Workers.run(series, in: harness.session) { try run($0, $1) }
        report.say(deadline)
        return try report.conclude { totals in
            "\(totals.losses == 0 ? "no" : "\(totals.losses)") losses in \(totals.points) runs"
        }
    }

    private func run(_ series: Series, _ worker: Worker) throws {
        guard !deadline.isPast else { return }
        let faults = FaultSeries(
            trial: try Trial(harness, series.scenario, worker), fault: series.fault, call: series.call)
        let points = try faults.points(step: step)
        var (tried, done, refused, crashed, lost) = (0, 0, 0, 0, 0)
        for point in points.tried where !deadline.isPast {
            let (outcome, losses) = try faults.judge(faults.run(point))
            tried += 1
            switch outcome {
            case .succeeded: done += 1
            case .refused: refused += 1
            case .crashed: crashed += 1
            case .failed: break
            }
            lost += losses.count
            report.complain(
                "\(series.scenario.name) \(series.fault.rawValue) \(series.call) \(point.number)", losses)
        }
        guard points.all > 0 else { return }
        report.add(points: tried, crashes: crashed)
        report.row(
            series.scenario.name, series.fault.rawValue, series.call, "\(tried)/\(points.all)", String(done),
            String(refused), String(lost))
    }
}
