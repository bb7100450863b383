import Foundation

/// The command-line tool: its start time, and its size with Swift's runtime linked statically.
struct ToolBenchmarks {
    let run: UpgradeRun
    let runs: Int
    /// The command-line tool with Swift's runtime linked statically; `nil` if it was not built.
    let staticTool: String?

    func measure() throws -> [Measurement] {
        try run.writeLegacy(1_000)
        var all = [try start("cold start: cipherstore inspect", nil)]
        if let staticTool {
            all.append(try start("cold start, linked statically", staticTool))
            let size = try FileManager.default.attributesOfItem(atPath: staticTool)[.size] as? Int ?? 0
            all.append(.size("size, linked statically, stripped", Double(size) / 1e6, atMost: 15))
        }
        return all
    }

    private func start(_ name: String, _ tool: String?) throws -> Measurement {
        try .alternating(
            name, against: "25 ms", goal: 1, runs: max(runs, 20), ours: { try run.inspect(with: tool) },
            theirs: { 0.025 })
    }
}
