import CipherSQLite
import Foundation

/// All measurements of one run, as a table, as JSON and as a chart.
struct BenchmarkReport: Codable {
    let engine: String
    let cores: Int
    let measurements: [Measurement]
    let upgrade: UpgradeBenchmarks.Facts?

    init(_ measurements: [Measurement], upgrade: UpgradeBenchmarks.Facts?) {
        engine = "SQLCipher \(Engine.current.cipherVersion), SQLite \(Engine.current.sqliteVersion)"
        cores = ProcessInfo.processInfo.activeProcessorCount
        self.measurements = measurements
        self.upgrade = upgrade
    }

    // MARK: Table

    var table: String {
        var lines = ["\(engine), \(cores) cores; medians of runs in turn", ""]
        lines.append(Self.line("what", "ours s", "base s", "ratio", "goal", ""))
        for measurement in measurements {
            lines.append(
                Self.line(
                    measurement.name, Self.number(Measurement.median(measurement.ours), 3),
                    Self.number(Measurement.median(measurement.theirs), 3), Self.number(measurement.ratio, 2),
                    Self.number(measurement.goal, 2), measurement.isMet ? "met" : "NOT MET"))
        }
        if let upgrade {
            lines.append("")
            lines.append(
                "upgrade: \(Self.number(upgrade.megabytes, 1)) MB, peak memory \(Self.number(upgrade.peakMegabytes, 1)) MB; "
                    + upgrade.stageSeconds.sorted { $0.key < $1.key }
                    .map { "\($0.key) \(Self.number(Measurement.median($0.value), 2)) s" }.joined(separator: ", "))
        }
        return lines.joined(separator: "\n")
    }

    private static func line(_ name: String, _ columns: String...) -> String {
        name.padding(toLength: 44, withPad: " ", startingAt: 0)
            + columns.map { String(repeating: " ", count: max(1, 9 - $0.count)) + $0 }.joined()
    }

    private static func number(_ value: Double, _ places: Int) -> String {
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

    // MARK: Chart

    /// A bar for each ratio, with a mark at its goal; the baseline is 1.
    var chart: String {
        let left = 330.0, scale = 220.0, height = 26.0
        let widest = max(2, measurements.map { max($0.ratio, $0.goal) }.max() ?? 2)
        let width = left + scale * widest + 60
        let whole = 60 + height * Double(measurements.count)
        func x(_ ratio: Double) -> Double { left + scale * ratio }
        var parts = [
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Int(width))" height="\(Int(whole))" \
            font-family="sans-serif" font-size="13">
            """,
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
            "<text x=\"10\" y=\"22\" font-weight=\"bold\">Time as a multiple of the baseline (1.0); the mark is the goal</text>",
            "<line x1=\"\(x(1))\" y1=\"34\" x2=\"\(x(1))\" y2=\"\(whole - 10)\" stroke=\"#888\" stroke-dasharray=\"4 3\"/>",
        ]
        for (number, measurement) in measurements.enumerated() {
            let y = 40 + height * Double(number)
            let color = measurement.isMet ? "#2e7d32" : "#c77700"
            parts.append("<text x=\"10\" y=\"\(y + 15)\">\(Self.escaped(measurement.name))</text>")
            parts.append(
                "<rect x=\"\(left)\" y=\"\(y + 3)\" width=\"\(scale * measurement.ratio)\" height=\"16\" fill=\"\(color)\"/>"
            )
            parts.append(
                "<line x1=\"\(x(measurement.goal))\" y1=\"\(y)\" x2=\"\(x(measurement.goal))\" y2=\"\(y + 22)\" "
                    + "stroke=\"black\" stroke-width=\"2\"/>")
            parts.append(
                "<text x=\"\(x(max(measurement.ratio, measurement.goal)) + 6)\" y=\"\(y + 16)\">"
                    + "\(Self.number(measurement.ratio, 2))</text>")
        }
        return (parts + ["</svg>", ""]).joined(separator: "\n")
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
    }
}
