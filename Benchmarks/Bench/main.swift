import Foundation

// Run by Scripts/bench. Measures this project's performance goals, each as a ratio to a baseline in the same run.
//
// Usage: Bench PROGRAMS FOLDER SQLCIPHER MESSAGES RUNS SIZES STATIC-TOOL JSON SVG SECTION...
//
// PROGRAMS is the folder of cipherstore and CipherLegacyChat; SIZES are the megabytes of the curve, separated by
// commas; STATIC-TOOL is empty if the tool was not linked statically.

let arguments = CommandLine.arguments
// Usage: Bench app DATABASE MODE SECONDS. The section online runs this.
if arguments.count == 5, arguments[1] == OnlineApp.word, let mode = OnlineApp.Mode(rawValue: arguments[3]),
    let seconds = Double(arguments[4])
{
    do {
        try OnlineApp(database: URL(filePath: arguments[2]), mode: mode, seconds: seconds).run()
        exit(0)
    } catch {
        FileHandle.standardError.write(Data("bench: \(error)\n".utf8))
        exit(1)
    }
}
guard arguments.count >= 11, let messages = Int(arguments[4]), let runs = Int(arguments[5]) else {
    print("usage: Bench PROGRAMS FOLDER SQLCIPHER MESSAGES RUNS SIZES STATIC-TOOL JSON SVG SECTION...")
    exit(64)
}

func measure(_ section: String, _ report: inout BenchmarkReport) throws {
    let folder = URL(filePath: arguments[2])
    let run = UpgradeRun(
        bin: URL(filePath: arguments[1]), sqlcipher: arguments[3], folder: folder,
        legacy: folder.appending(path: "legacy.db").path(percentEncoded: false))
    switch section {
    case "upgrade", "curve":
        let upgrade = UpgradeBenchmarks(
            run: run, messages: messages, runs: runs, sizes: arguments[6].split(separator: ",").compactMap { Int($0) })
        if section == "upgrade" {
            let (measurements, stages) = try upgrade.upgrade()
            report.measurements += measurements
            report.stages = stages
        } else {
            let (measurements, points) = try upgrade.curve()
            report.measurements += measurements
            report.curve = points
        }
    case "online":
        let (measurements, stages) = try OnlineBenchmarks(run: run, messages: messages, runs: runs).measure()
        report.measurements += measurements
        report.onlineStages = stages
    case "busy":
        report.measurements += try OnlineBenchmarks(run: run, messages: messages, runs: runs).measureWithoutPause()
    case "shapes": report.measurements += try ShapeBenchmarks(run: run).measure()
    case "tool":
        report.measurements += try ToolBenchmarks(
            run: run, runs: runs, staticTool: arguments[7].isEmpty ? nil : arguments[7]
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
    // Sections that measure the memory of other programs come first, because this program's memory would count with
    // theirs.
    for section in ["upgrade", "curve", "online", "busy", "shapes", "tool", "store", "migration", "statements"]
    where arguments[10...].contains(section) { try measure(section, &report) }
    print(report.table)
    try report.json.write(to: URL(filePath: arguments[8]))
    if let chart = report.chart { try Data(chart.utf8).write(to: URL(filePath: arguments[9])) }
} catch {
    print("bench: \(error)")
    exit(1)
}
