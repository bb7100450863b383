import Foundation

/// Compares the encryption of a database while an app uses it, with the same app without encryption.
///
/// The other baseline is the encryption before the app opens its store.
struct OnlineBenchmarks {
    let run: UpgradeRun
    let messages: Int
    let runs: Int

    /// A run of an app, and its peak memory use.
    private struct Run {
        let facts: OnlineApp.Facts
        let peakMegabytes: Double
    }

    /// - Returns: The comparisons, and the time from the opening to each stage of the last run.
    func measure() throws -> (measurements: [Measurement], stages: String) {
        try run.writeLegacy(messages)
        var (plain, online, offline): ([Run], [Run], [Run]) = ([], [], [])
        for number in 0...runs {
            let converted = try app(.whileOpen, seconds: 0)
            let baselines = (
                try app(.plaintext, seconds: min(10, max(2, converted.facts.conversion))),
                try app(.beforeOpening, seconds: 0)
            )
            // The first run of each does not count.
            guard number > 0 else { continue }
            online.append(converted)
            plain.append(baselines.0)
            offline.append(baselines.1)
        }
        func compared(
            _ name: String, _ unit: String = "s", against baseline: String, goal: Double,
            _ ours: (Run) -> Double, _ theirs: [Run], _ base: (Run) -> Double
        ) -> Measurement {
            Measurement(
                name: name, baseline: baseline, unit: unit, ours: online.map(ours), theirs: theirs.map(base), goal: goal
            )
        }
        /// Returns a comparison of a limit with the value that 99 of 100 runs do not exceed.
        func limited(_ name: String, atMost limit: Double, _ value: (Run) -> Double) -> Measurement {
            let values = online.map { value($0) * 1_000 }.sorted()
            let longest = values[Int((Double(values.count) * 0.99).rounded(.up)) - 1]
            return Measurement(
                name: name, baseline: "\(Int(limit)) ms, in 99% of \(values.count) runs", unit: "ms",
                ours: [longest],
                theirs: [limit], goal: 1)
        }
        let memory = zip(online, plain).map { $0.peakMegabytes - $1.peakMegabytes }
        let last = online.last?.facts
        return (
            [
                limited("additional time of the open", atMost: 50) { run in
                    run.facts.open - Measurement.median(plain.map(\.facts.open))
                },
                limited("the longest wait of a write at the switch", atMost: 100, \.facts.longestWriteAtSwitch),
                limited("the longest wait of a read at the switch", atMost: 150, \.facts.longestReadAtSwitch),
                compared(
                    "the longest wait of a write before the switch", against: "without the encryption", goal: 10,
                    \.facts.longestWriteBefore, plain, \.facts.longestWriteBefore),
                compared(
                    "the app's time per read or write", "us", against: "without the encryption", goal: 1 / 0.7,
                    { 1e6 / $0.facts.throughput }, plain, { 1e6 / $0.facts.throughput }),
                Measurement(
                    name: "additional peak memory", baseline: "64 MB", unit: "MB",
                    ours: memory, theirs: memory.map { _ in 64 }, goal: 1),
                compared(
                    "encrypt \(messages) messages while the app is running", against: "encryption before opening",
                    goal: 2, \.facts.conversion, offline, \.facts.conversion),
            ],
            "the last encryption, in seconds since the open began: " + (last?.stages.joined(separator: ", ") ?? "")
                + "; \(last?.postponements ?? 0) postponements"
        )
    }

    /// Compares the encryption while an app writes without a pause with that in a store that is not used.
    ///
    /// The result is the slowest run of each, because every run has to meet the goal.
    func measureWithoutPause() throws -> [Measurement] {
        try run.writeLegacy(messages)
        var (busy, quiet): ([Double], [Double]) = ([], [])
        for _ in 1...runs {
            busy.append(try app(.withoutPause, seconds: 0).facts.conversion)
            quiet.append(try app(.alone, seconds: 0).facts.conversion)
        }
        let slowest = busy.max() ?? 0
        return [
            Measurement(
                name: "encrypt \(messages) messages while three threads write without a pause, slowest of \(runs) runs",
                baseline: "median of a store that is not used", unit: "s", ours: [slowest],
                theirs: [Measurement.median(quiet)], goal: 3)
        ]
    }

    /// Runs an app on a copy of the legacy database.
    private func app(_ mode: OnlineApp.Mode, seconds: Double) throws -> Run {
        let database = try run.copyLegacy()
        let child = try ChildProcess.run(
            CommandLine.arguments[0], [OnlineApp.word, database, mode.rawValue, String(seconds)])
        return Run(
            facts: try JSONDecoder().decode(OnlineApp.Facts.self, from: child.output),
            peakMegabytes: child.peakMegabytes)
    }
}
