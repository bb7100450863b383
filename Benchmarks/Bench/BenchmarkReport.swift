import CipherSQLite
import Foundation

/// All measurements of one run, as a table and as JSON.
struct BenchmarkReport: Codable {
    let engine: String
    let cores: Int
    var measurements: [Measurement] = []
    /// The seconds of each stage of the upgrade, in each run.
    var stages: [String: [Double]] = [:]
    /// When each stage of an encryption began, while an app was at work.
    var onlineStages: String?
    /// Measurements of the upgrade by the size of the file.
    var curve: [UpgradeBenchmarks.Point] = []

    init() {
        engine = "SQLCipher \(Engine.current.cipherVersion), SQLite \(Engine.current.sqliteVersion)"
        cores = ProcessInfo.processInfo.activeProcessorCount
    }

    // MARK: Table

    var table: String {
        var lines = ["\(engine), \(cores) cores; medians of alternating runs", ""]
        lines.append(Self.line("what", "ours", "base", "", "ratio", "goal", ""))
        for measurement in measurements {
            lines.append(
                Self.line(
                    measurement.name, Self.number(Measurement.median(measurement.ours), 3),
                    Self.number(Measurement.median(measurement.theirs), 3), measurement.unit,
                    Self.number(measurement.ratio, 2), Self.number(measurement.goal, 2),
                    measurement.isMet ? "met" : "NOT MET")
                    + "  against \(measurement.baseline)" + (measurement.peers.map { "; \($0)" } ?? ""))
        }
        if !stages.isEmpty {
            lines.append("")
            lines.append(
                "the upgrade's stages: "
                    + stages.sorted { $0.key < $1.key }
                    .map { "\($0.key) \(Self.number(Measurement.median($0.value), 2)) s" }.joined(separator: ", "))
        }
        if let onlineStages { lines += ["", onlineStages] }
        if !curve.isEmpty {
            lines += ["", Self.line("the upgrade by size", "MB", "s", "s/GB", "peak MB", "export s", "peak MB")]
            for point in curve {
                lines.append(
                    Self.line(
                        "", Self.number(point.megabytes, 0), Self.number(point.seconds, 2),
                        Self.number(point.seconds / point.megabytes * 1_000, 2), Self.number(point.peakMegabytes, 1),
                        Self.number(point.exportSeconds, 2), Self.number(point.exportPeakMegabytes, 1)))
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func line(_ name: String, _ columns: String...) -> String {
        name.padding(toLength: 44, withPad: " ", startingAt: 0)
            + columns.map { String(repeating: " ", count: max(1, 9 - $0.count)) + $0 }.joined()
    }

    static func number(_ value: Double, _ places: Int) -> String {
        String(format: "%.\(places)f", value)
    }

    // MARK: JSON

    var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            return try encoder.encode(self)
        }
    }
}
