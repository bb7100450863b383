import Foundation

/// One comparison: what ours takes, what the baseline takes, and the ratio that is wanted.
struct Measurement: Codable {
    /// What is compared, and with what.
    let name: String
    let baseline: String
    /// What the numbers count: seconds of wall time or megabytes.
    var unit = "s"
    /// The numbers of each run, in turn.
    let ours: [Double]
    let theirs: [Double]
    /// The highest ratio of medians that is wanted.
    let goal: Double
    /// What other libraries take for the same, in multiples of their baseline, where it was measured.
    var peers: String?

    /// The ratio of medians.
    var ratio: Double { Self.median(ours) / Self.median(theirs) }
    var isMet: Bool { ratio <= goal }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// A number of megabytes against the most that it may be.
    static func size(_ name: String, _ megabytes: Double, atMost limit: Double) -> Measurement {
        Measurement(
            name: name, baseline: "\(Int(limit)) MB", unit: "MB", ours: [megabytes], theirs: [limit], goal: 1)
    }

    /// Runs both in turn, after a run of each that does not count.
    static func alternating(
        _ name: String, against baseline: String, goal: Double, peers: String? = nil, runs: Int,
        ours: () throws -> Double, theirs: () throws -> Double
    ) throws -> Measurement {
        var left: [Double] = []
        var right: [Double] = []
        for run in 0...runs {
            let seconds = (try ours(), try theirs())
            if run > 0 {
                left.append(seconds.0)
                right.append(seconds.1)
            }
        }
        return Measurement(name: name, baseline: baseline, ours: left, theirs: right, goal: goal, peers: peers)
    }

    /// The seconds that `body` takes.
    static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let clock = ContinuousClock()
        let duration = try clock.measure(body)
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

/// Why a benchmark could not be run.
struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
