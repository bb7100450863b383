import Foundation

// What Scripts/bench runs: every speed that this project promises, as a ratio to a baseline in the same run.
//
// Usage: Bench FOLDER SQLCIPHER MESSAGES RUNS JSON SVG [SECTION...]     sections: upgrade, statements, store

let arguments = CommandLine.arguments
guard arguments.count >= 7, let messages = Int(arguments[3]), let runs = Int(arguments[4]) else {
    print("usage: Bench FOLDER SQLCIPHER MESSAGES RUNS JSON SVG [SECTION...]")
    exit(64)
}
let folder = URL(filePath: arguments[1])
let sections = arguments.count > 7 ? Set(arguments[7...]) : ["upgrade", "statements", "store"]
do {
    var measurements: [Measurement] = []
    var facts: UpgradeBenchmarks.Facts?
    if sections.contains("upgrade") {
        let bin = URL(filePath: arguments[0]).deletingLastPathComponent()
        let upgrade = try UpgradeBenchmarks(
            folder: folder, bin: bin, sqlcipher: arguments[2], messages: messages, runs: runs
        ).run()
        measurements += upgrade.measurements
        facts = upgrade.facts
    }
    if sections.contains("statements") {
        let statements = try StatementBenchmarks(folder: folder, runs: runs)
        defer { statements.close() }
        measurements += try statements.run()
    }
    if sections.contains("store") { measurements += try StoreBenchmarks(folder: folder, runs: runs).run() }
    let report = BenchmarkReport(measurements, upgrade: facts)
    print(report.table)
    try report.json.write(to: URL(filePath: arguments[5]))
    try Data(report.chart.utf8).write(to: URL(filePath: arguments[6]))
} catch {
    print("bench: \(error)")
    exit(1)
}
