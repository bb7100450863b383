import Foundation

extension BenchmarkReport {
    /// A bar for each ratio, with a mark at its goal, as SVG; the baseline is 1.
    ///
    /// Bars end where three baselines do; the number beside tells the rest.
    var chart: String {
        let left = 330.0, scale = 200.0, height = 24.0
        let width = left + scale * 3 + 60
        let whole = 60 + height * Double(measurements.count)
        func x(_ ratio: Double) -> Double { left + scale * min(ratio, 3) }
        var parts = [
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Int(width))" height="\(Int(whole))" \
            font-family="sans-serif" font-size="13">
            """,
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
            "<text x=\"10\" y=\"22\" font-weight=\"bold\">Multiples of the baseline (1.0); the mark is the goal</text>",
            "<line x1=\"\(x(1))\" y1=\"34\" x2=\"\(x(1))\" y2=\"\(whole - 10)\" stroke=\"#888\" stroke-dasharray=\"4 3\"/>",
        ]
        for (number, measurement) in measurements.enumerated() {
            let y = 40 + height * Double(number)
            let color = measurement.isMet ? "#2e7d32" : "#c77700"
            parts += [
                "<text x=\"10\" y=\"\(y + 15)\">\(Self.escaped(measurement.name))</text>",
                "<rect x=\"\(left)\" y=\"\(y + 3)\" width=\"\(x(measurement.ratio) - left)\" height=\"16\" fill=\"\(color)\"/>",
                "<line x1=\"\(x(measurement.goal))\" y1=\"\(y)\" x2=\"\(x(measurement.goal))\" y2=\"\(y + 22)\" "
                    + "stroke=\"black\" stroke-width=\"2\"/>",
                "<text x=\"\(x(max(measurement.ratio, measurement.goal)) + 6)\" y=\"\(y + 16)\">"
                    + "\(Self.number(measurement.ratio, 2))</text>",
            ]
        }
        return (parts + ["</svg>", ""]).joined(separator: "\n")
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
    }
}
