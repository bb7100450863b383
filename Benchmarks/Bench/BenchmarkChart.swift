import Foundation

extension BenchmarkReport {
    /// Charts of the time and memory of an encryption by the size of the database, compared with `sqlcipher_export`, as
    /// SVG.
    ///
    /// `nil` if the curve was not measured.
    var chart: String? {
        guard let largest = curve.map(\.megabytes).max(), curve.count > 1 else { return nil }
        let panels = [
            Panel(
                title: "Time, in seconds", x: 60, largest: largest,
                ours: curve.map { ($0.megabytes, $0.seconds) }, theirs: curve.map { ($0.megabytes, $0.exportSeconds) }),
            Panel(
                title: "Peak memory, in MB", x: 440, largest: largest,
                ours: curve.map { ($0.megabytes, $0.peakMegabytes) },
                theirs: curve.map { ($0.megabytes, $0.exportPeakMegabytes) }),
        ]
        let head = """
            <svg xmlns="http://www.w3.org/2000/svg" width="760" height="300" viewBox="0 0 760 300" \
            font-family="system-ui, sans-serif" font-size="13" fill="#1a202c" role="img" \
            aria-label="Time and memory of an encryption by the size of the database">
            <rect width="760" height="300" fill="white"/>
            """
        let lines = [
            (60.0, Panel.oursColor, "cipherstore encrypt, with the proof"),
            (330.0, Panel.theirsColor, "sqlcipher_export, no proof"),
        ]
        let legend = lines.map { x, color, name in
            "<path d=\"M\(x) 20h24\" stroke=\"\(color)\" stroke-width=\"3\"/>"
                + "<text x=\"\(x + 32)\" y=\"24\">\(name)</text>"
        }
        return ([head] + legend + panels.map(\.svg) + ["</svg>", ""]).joined(separator: "\n")
    }

    /// Two lines over the size of the database.
    private struct Panel {
        static let oursColor = "#2b6cb0"
        static let theirsColor = "#c05621"
        let title: String
        let x: Double
        let largest: Double
        let ours: [(Double, Double)]
        let theirs: [(Double, Double)]

        private let width = 280.0, top = 70.0, height = 170.0

        /// A round number that is at least as large.
        private static func roof(_ value: Double) -> Double {
            let power = pow(10, floor(log10(max(value, 1e-6))))
            return ([1, 2, 4, 5, 8, 10].map { $0 * power }.first { $0 >= value }) ?? 10 * power
        }

        var svg: String {
            let roof = Self.roof((ours + theirs).map(\.1).max() ?? 1)
            let end = Self.roof(largest)
            func place(_ point: (Double, Double)) -> String {
                let across = x + width * point.0 / end, down = top + height * (1 - point.1 / roof)
                return "\(BenchmarkReport.number(across, 1)),\(BenchmarkReport.number(down, 1))"
            }
            var parts = ["<text x=\"\(x)\" y=\"54\" font-weight=\"bold\">\(title)</text>"]
            for step in 0...4 {
                let share = Double(step) / 4, y = top + height * (1 - share)
                parts.append("<path d=\"M\(x) \(y)h\(width)\" stroke=\"#e2e8f0\"/>")
                parts.append(
                    "<text x=\"\(x - 8)\" y=\"\(y + 4)\" text-anchor=\"end\" fill=\"#4a5568\">"
                        + "\(Self.label(roof * share))</text>")
                parts.append(
                    "<text x=\"\(x + width * share)\" y=\"\(top + height + 20)\" text-anchor=\"middle\" "
                        + "fill=\"#4a5568\">\(Self.label(end * share))</text>")
            }
            parts.append(
                "<text x=\"\(x + width / 2)\" y=\"\(top + height + 42)\" text-anchor=\"middle\" fill=\"#4a5568\">"
                    + "size of the database, in MB</text>")
            for (points, color) in [(theirs, Self.theirsColor), (ours, Self.oursColor)] {
                parts.append(
                    "<polyline points=\"\(points.map(place).joined(separator: " "))\" fill=\"none\" stroke=\"\(color)\" "
                        + "stroke-width=\"3\"/>")
            }
            return parts.joined(separator: "\n")
        }

        private static func label(_ value: Double) -> String {
            value == value.rounded() ? String(Int(value)) : BenchmarkReport.number(value, 1)
        }
    }
}
