import Foundation

/// The upgrade of a chat database: its time and its memory use, also by the size of the file.
struct UpgradeBenchmarks {
    let run: UpgradeRun
    let messages: Int
    let runs: Int
    /// The sizes of the curve, in megabytes.
    let sizes: [Int]

    /// One size of the curve.
    struct Point: Codable {
        let megabytes: Double
        let seconds: Double
        let peakMegabytes: Double
        /// The time of `sqlcipher_export` for the same file.
        let exportSeconds: Double
        let exportPeakMegabytes: Double
    }

    /// The number of messages in a megabyte.
    private static let messagesPerMegabyte = 2_310

    /// - Returns: The comparisons, and the seconds of each stage.
    func upgrade() throws -> (measurements: [Measurement], stages: [String: [Double]]) {
        try run.writeLegacy(messages)
        var facts: [UpgradeRun.Facts] = []
        let whole = try Measurement.alternating(
            "encrypt \(messages) messages, proven", against: "sqlcipher_export", goal: 0.6, runs: runs,
            ours: {
                facts.append(try run.encrypt())
                return facts.last?.seconds ?? .nan
            }, theirs: run.export)
        var stages: [String: [Double]] = [:]
        for run in facts.dropFirst() {
            for (stage, seconds) in run.stages { stages[stage, default: []].append(seconds) }
        }
        let build = Measurement(
            name: "the build alone", baseline: "sqlcipher_export", ours: stages["building"] ?? [],
            theirs: whole.theirs, goal: 0.35)
        let peak = facts.map(\.peakMegabytes).max() ?? .nan
        return ([whole, build, .size("peak memory of the upgrade", peak, atMost: 64)], stages)
    }

    /// Measures files of increasing size.
    ///
    /// Time is linear if a megabyte of the largest file takes no longer than a megabyte of a file a quarter as large.
    func curve() throws -> (measurements: [Measurement], points: [Point]) {
        var points: [Point] = []
        for size in sizes {
            try run.writeLegacy(size * Self.messagesPerMegabyte)
            _ = try run.encrypt()
            let pairs = try (0..<max(1, min(runs, 2_000 / size))).map { _ in
                (ours: try run.encrypt(), theirs: try run.exportRun())
            }
            points.append(
                Point(
                    megabytes: pairs[0].ours.megabytes, seconds: Measurement.median(pairs.map(\.ours.seconds)),
                    peakMegabytes: pairs.map(\.ours.peakMegabytes).max() ?? .nan,
                    exportSeconds: Measurement.median(pairs.map(\.theirs.seconds)),
                    exportPeakMegabytes: pairs.map(\.theirs.peakMegabytes).max() ?? .nan))
        }
        guard points.count >= 2, let last = points.last else { return ([], points) }
        let quarter = points[points.count - 2]
        return (
            [
                Measurement(
                    name: "seconds per GB, \(Int(last.megabytes)) MB file",
                    baseline: "\(Int(quarter.megabytes)) MB file", ours: [last.seconds / last.megabytes * 1_000],
                    theirs: [quarter.seconds / quarter.megabytes * 1_000], goal: 1.15),
                .size("peak memory, \(Int(last.megabytes)) MB file", last.peakMegabytes, atMost: 64),
            ], points
        )
    }
}
