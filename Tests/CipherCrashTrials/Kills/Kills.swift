import CipherPlatform

/// Kills each operation at each system call that can change something, in a separate run.
struct Kills: Sendable {
    static let usage = "kills [--seconds N] [--operation NAME] [--call NAME]"

    private static let calls = [
        "openat", "pwrite64", "write", "fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat",
        "unlink", "unlinkat", "ftruncate", "fchmod", "fchown", "fsetxattr", "fremovexattr", "flock",
    ]

    private struct Series {
        let scenario: Scenario
        let call: String
    }

    private let harness: Harness
    private let deadline: Deadline
    private let operation: String?
    private let calls: [String]
    private let report = Report("kills", widths: [40, 10, -9, -6, -6, -6])
    /// How many runs ended before their call was made.
    private let missed = Locked(0)

    init(_ arguments: some Sequence<String>, in session: Session) throws {
        let options = try Options(arguments, usage: Self.usage, valued: ["--seconds", "--operation", "--call"])
        deadline = Deadline(seconds: try options.number("--seconds") ?? 1_800)
        operation = options["--operation"]
        calls = options["--call"].map { [$0] } ?? Self.calls
        harness = try Harness(in: session, isRepeatable: true)
    }

    /// Returns whether nothing was lost.
    func run() throws -> Bool {
        report.row("operation", "call", "points", "old", "new", "losses")
        try run(Scenario.named(operation))
        if operation == nil { try run(harness.starts.leftovers.map(Scenario.encryption(among:))) }
        report.say(deadline)
        try checkMissed()
        return try report.conclude { totals in
            "\(totals.losses == 0 ? "no" : "\(totals.losses)") losses in \(totals.points) kills"
        }
    }

    /// For a few calls, the thread that makes them differs from run to run.
    private func checkMissed() throws {
        let (missed, points) = (missed.with { $0 }, report.points)
        guard missed > 0 else { return }
        report.say("\(missed) of \(points) runs ended before their call came")
        guard missed * 2 < points else { throw TrialError(detail: "too few runs were killed") }
    }

    private func run(_ scenarios: [Scenario]) throws {
        let series = scenarios.flatMap { scenario in calls.map { Series(scenario: scenario, call: $0) } }
        try Workers.run(series, in: harness.session) { try run($0, $1) }
    }

    private func run(_ series: Series, _ worker: Worker) throws {
        guard !deadline.isPast else { return }
        let trial = try Trial(harness, series.scenario, worker)
        let most = try trial.countCalls(["-e", "trace=\(series.call)"])
        var (number, old, new, lost) = (0, 0, 0, 0)
        while number < most, !deadline.isPast {
            number += 1
            let (found, losses) = try kill(trial, series.call, number)
            if found.form == series.scenario.before {
                old += 1
            } else if found.form == series.scenario.after {
                new += 1
            }
            lost += losses.count
            report.complain("\(series.scenario.name) \(series.call) \(number)", losses)
        }
        guard most > 0 else { return }
        report.add(points: number)
        report.row(
            series.scenario.name, series.call, "\(number)/\(most)", String(old), String(new), String(lost))
    }

    /// Kills the operation when one call begins.
    private func kill(_ trial: Trial, _ call: String, _ number: Int) throws -> (found: Finding, losses: [String]) {
        try trial.lay()
        let ending = try trial.worker.run(Strace.sending("SIGKILL", at: call, number, trial.command))
        if ending.cause != .killed(SIGKILL) { missed.with { $0 += 1 } }
        let state = try FolderState(of: trial.worker.folder)
        let (found, losses) = try trial.settle(state)
        let wholeness = trial.wholenessLosses(found)
        if trial.scenario.name == "encrypt", wholeness.isEmpty {
            let order = (calls.firstIndex(of: call) ?? 0) << 32 + number
            harness.starts.keep(state, found.form, order: order)
        }
        let rows = found.losses(of: Saying(ending.output).acknowledged)
        return (found, trial.untouchedLosses(state) + wholeness + rows + losses)
    }
}
