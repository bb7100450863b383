import Foundation

/// The encryption of a database while an app works with it, against the same app without it, and against the encryption
/// before the app opens its store.
struct OnlineBenchmarks {
    let run: UpgradeRun
    let messages: Int
    let runs: Int

    /// A run of an app, and the most memory that it had.
    private struct Run {
        let facts: OnlineApp.Facts
        let peakMegabytes: Double
    }

    /// - Returns: The comparisons, and the time from the opening to each stage of the last run, for who looks for the
    ///   longest.
    func measure() throws -> (measurements: [Measurement], stages: String) {
        try run.writeLegacy(messages)
        var (plain, online, offline): ([Run], [Run], [Run]) = ([], [], [])
        for number in 0...runs {
            let converted = try app(.whileOpen, seconds: 0)
            let baselines = (
                try app(.plaintext, seconds: min(10, max(2, converted.facts.conversion))),
                try app(.beforeOpening, seconds: 0)
            )
            // The first of each does not count.
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
        /// The longest that 99 of 100 runs have.
        func limited(_ name: String, atMost limit: Double, _ value: (Run) -> Double) -> Measurement {
            let values = online.map { value($0) * 1_000 }.sorted()
            let longest = values[Int((Double(values.count) * 0.99).rounded(.up)) - 1]
            return Measurement(
                name: name, baseline: "\(Int(limit)) ms, 99 of 100 of \(values.count) runs", unit: "ms",
                ours: [longest],
                theirs: [limit], goal: 1)
        }
        let memory = zip(online, plain).map { $0.peakMegabytes - $1.peakMegabytes }
        let last = online.last?.facts
        return (
            [
                limited("the open, more than that of the same plaintext", atMost: 50) { run in
                    run.facts.open - Measurement.median(plain.map(\.facts.open))
                },
                limited("the longest wait of a write at the switch", atMost: 100, \.facts.longestWriteAtSwitch),
                limited("the longest wait of a read at the switch", atMost: 150, \.facts.longestReadAtSwitch),
                compared(
                    "the longest wait of a write, before it", against: "without the encryption", goal: 10,
                    \.facts.longestWriteBefore, plain, \.facts.longestWriteBefore),
                compared(
                    "time for as much work of the app", "us", against: "without the encryption", goal: 1 / 0.7,
                    { 1e6 / $0.facts.throughput }, plain, { 1e6 / $0.facts.throughput }),
                Measurement(
                    name: "memory above the store's own", baseline: "64 MB", unit: "MB",
                    ours: memory, theirs: memory.map { _ in 64 }, goal: 1),
                compared(
                    "encrypt \(messages) messages, the app at work", against: "before opening, nothing else at work",
                    goal: 2, \.facts.conversion, offline, \.facts.conversion),
            ],
            "the last encryption, seconds since the open began: " + (last?.stages.joined(separator: ", ") ?? "")
                + "; \(last?.postponements ?? 0) postponements"
        )
    }

    /// Has an app work on a copy of the legacy database.
    private func app(_ mode: OnlineApp.Mode, seconds: Double) throws -> Run {
        let database = try run.copyLegacy()
        let child = try ChildProcess.run(
            CommandLine.arguments[0], [OnlineApp.word, database, mode.rawValue, String(seconds)])
        return Run(
            facts: try JSONDecoder().decode(OnlineApp.Facts.self, from: child.output),
            peakMegabytes: child.peakMegabytes)
    }
}
