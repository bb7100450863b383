import Foundation

/// The command line against the engine's own: `sqlcipher_export`, which proves nothing and swaps nothing.
struct UpgradeBenchmarks {
    let folder: URL
    let bin: URL
    /// The `sqlcipher` command line.
    let sqlcipher: String
    let messages: Int
    let runs: Int

    /// What the upgrade told of itself.
    struct Facts: Codable {
        var megabytes = 0.0
        var peakMegabytes = 0.0
        var stageSeconds: [String: [Double]] = [:]
    }

    private var legacy: String { folder.appending(path: "legacy.db").path(percentEncoded: false) }
    private var work: URL { folder.appending(path: "work") }
    private var database: String { work.appending(path: "chat.db").path(percentEncoded: false) }
    private var key: String { folder.appending(path: "key").path(percentEncoded: false) }

    func run() throws -> (measurements: [Measurement], facts: Facts) {
        _ = try ChildProcess.run(program("LegacyChat"), [legacy, String(messages)])
        guard
            FileManager.default.createFile(
                atPath: key, contents: Data("secret".utf8), attributes: [.posixPermissions: 0o600])
        else { throw BenchmarkFailure("the key file cannot be made") }
        var facts = Facts()
        var building: [Double] = []
        let whole = try Measurement.alternating(
            "encrypt \(messages) messages, proven", against: "sqlcipher_export", goal: 0.6, runs: runs,
            ours: {
                let run = try encrypt()
                facts.peakMegabytes = run.peak
                facts.megabytes = run.megabytes
                for (stage, seconds) in run.stages { facts.stageSeconds[stage, default: []].append(seconds) }
                building.append(run.stages["building"] ?? .nan)
                return run.seconds
            }, theirs: export)
        let build = Measurement(
            name: "the build alone", baseline: "sqlcipher_export", ours: Array(building.dropFirst()),
            theirs: whole.theirs, goal: 0.35)
        return ([whole, build, try coldStart()], facts)
    }

    private func program(_ name: String) -> String { bin.appending(path: name).path(percentEncoded: false) }

    private func fresh() throws {
        try? FileManager.default.removeItem(at: work)
        try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
        for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: legacy + ending) {
            try FileManager.default.copyItem(atPath: legacy + ending, toPath: database + ending)
        }
        // What the copying left to write would be written beside what is measured.
        sync()
    }

    private func encrypt() throws -> (seconds: Double, peak: Double, megabytes: Double, stages: [String: Double]) {
        try fresh()
        let run = try ChildProcess.run(program("cipherstore"), ["encrypt", database, "--key-file", key, "--json"])
        let report = try JSONDecoder().decode(Report.self, from: run.output)
        return (run.seconds, run.peakMegabytes, Double(report.bytesBefore) / 1e6, report.stageSeconds)
    }

    private struct Report: Decodable {
        let bytesBefore: Int64
        let stageSeconds: [String: Double]
    }

    private func export() throws -> Double {
        try fresh()
        let target = work.appending(path: "encrypted.db").path(percentEncoded: false)
        let script = "ATTACH '\(target)' AS e KEY 'secret'; SELECT sqlcipher_export('e'); DETACH e;"
        return try ChildProcess.run(sqlcipher, [database, script]).seconds
    }

    /// From the start of the process to its end.
    private func coldStart() throws -> Measurement {
        try fresh()
        return try .alternating(
            "cold start: cipherstore inspect", against: "25 ms", goal: 1, runs: max(runs, 10),
            ours: { try ChildProcess.run(program("cipherstore"), ["inspect", database]).seconds }, theirs: { 0.025 })
    }
}

/// A program that is run to its end.
struct ChildProcess {
    let output: Data
    let seconds: Double
    /// The most memory that any program run so far took.
    let peakMegabytes: Double

    static func run(_ program: String, _ arguments: [String]) throws -> ChildProcess {
        let pipe = Pipe()
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        var output = Data()
        let seconds = try Measurement.seconds {
            try process.run()
            output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
        }
        guard process.terminationStatus == 0 else {
            throw BenchmarkFailure(
                "\(program) \(arguments.first ?? "") failed with status \(process.terminationStatus)")
        }
        // The most that any child took so far.
        var usage = rusage()
        #if canImport(Darwin)
            getrusage(RUSAGE_CHILDREN, &usage)
        #else
            getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        #endif
        return ChildProcess(output: output, seconds: seconds, peakMegabytes: Double(usage.ru_maxrss) / 1024)
    }
}
