import Foundation

// What Scripts/bench runs: every speed that this project promises, as a ratio to a baseline in the same run.
//
// Usage: Bench FOLDER SQLCIPHER MESSAGES RUNS SIZES STATIC-TOOL JSON SVG SECTION...
//
// SIZES are the megabytes of the curve, with commas; STATIC-TOOL is empty where the command line was not built so.

let arguments = CommandLine.arguments
guard arguments.count >= 10, let messages = Int(arguments[3]), let runs = Int(arguments[4]) else {
    print("usage: Bench FOLDER SQLCIPHER MESSAGES RUNS SIZES STATIC-TOOL JSON SVG SECTION...")
    exit(64)
}

func measure(_ section: String, _ report: inout BenchmarkReport) throws {
    let folder = URL(filePath: arguments[1])
    let run = UpgradeRun(
        bin: URL(filePath: arguments[0]).deletingLastPathComponent(), sqlcipher: arguments[2], folder: folder,
        legacy: folder.appending(path: "legacy.db").path(percentEncoded: false))
    switch section {
    case "upgrade", "curve":
        let upgrade = UpgradeBenchmarks(
            run: run, messages: messages, runs: runs, sizes: arguments[5].split(separator: ",").compactMap { Int($0) })
        if section == "upgrade" {
            let (measurements, stages) = try upgrade.upgrade()
            report.measurements += measurements
            report.stages = stages
        } else {
            let (measurements, points) = try upgrade.curve()
            report.measurements += measurements
            report.curve = points
        }
    case "shapes": report.measurements += try ShapeBenchmarks(run: run).measure()
    case "tool":
        report.measurements += try ToolBenchmarks(
            run: run, runs: runs, staticTool: arguments[6].isEmpty ? nil : arguments[6]
        ).measure()
    case "statements":
        let statements = try StatementBenchmarks(folder: folder, runs: runs)
        defer { statements.close() }
        report.measurements += try statements.run()
    case "store": report.measurements += try StoreBenchmarks(folder: folder, runs: runs).run()
    case "migration": report.measurements += try MigrationBenchmarks(folder: folder, runs: runs).measure()
    default: throw BenchmarkFailure("there is no section \(section)")
    }
}

do {
    var report = BenchmarkReport()
    // Those that measure the memory of other programs first: what this one takes would be counted with theirs.
    for section in ["upgrade", "curve", "shapes", "tool", "store", "migration", "statements"]
    where arguments[9...].contains(section) { try measure(section, &report) }
    print(report.table)
    try report.json.write(to: URL(filePath: arguments[7]))
    try Data(report.chart.utf8).write(to: URL(filePath: arguments[8]))
} catch {
    print("bench: \(error)")
    exit(1)
}
