import Foundation

/// A comparison of our result with a baseline's, and the highest ratio that meets the goal.
struct Measurement: Codable {
    /// What is compared, and with what.
    let name: String
    let baseline: String
    /// The unit of the numbers, such as seconds of wall time or megabytes.
    var unit = "s"
    /// The numbers of each run, in order.
    let ours: [Double]
    let theirs: [Double]
    /// The highest ratio of medians that meets the goal.
    let goal: Double
    /// The results of other libraries for the same work, as multiples of their baseline, if they were measured.
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

    /// Compares a number of megabytes with a limit.
    static func size(_ name: String, _ megabytes: Double, atMost limit: Double) -> Measurement {
        Measurement(
            name: name, baseline: "\(Int(limit)) MB", unit: "MB", ours: [megabytes], theirs: [limit], goal: 1)
    }

    /// Runs both alternately, after one uncounted run of each.
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
