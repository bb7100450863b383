import CipherTestSupport
import Foundation
import Testing

/// A folder of databases, and the tool to run on all of them.
struct FleetFixture {
    let tool: ToolFixture

    init() throws {
        tool = try ToolFixture()
    }

    /// The arguments that every run on the whole folder has after its command.
    var common: [String] { [tool.folder.path(""), "--recursive", "--json", "--key-file", tool.key] }

    /// Runs a command on the whole folder, with the fixture's key and with `--json`.
    func run(_ command: String, _ arguments: String...) throws -> ToolRun {
        try tool.run([command] + common + arguments)
    }

    /// Runs the tool with these arguments; a command without a folder runs on the whole folder.
    func run(_ arguments: [String]) throws -> ToolRun {
        try tool.run(arguments.contains("--recursive") || arguments[0] == "verify" ? arguments : whole(arguments))
    }

    private func whole(_ arguments: [String]) -> [String] { [arguments[0]] + common + arguments.dropFirst() }

    /// A plaintext database, with its folders.
    func make(_ path: String) throws {
        let folder = URL(fileURLWithPath: tool.folder.path(path)).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try tool.make(path)
    }

    /// The rows of the three databases in a test of signals, as plaintext.
    func rows() throws -> [String] {
        try ["a", "b", "c"].map {
            try tool.run("query", tool.folder.path("\($0)/app.db"), "SELECT * FROM note", "--csv").output
        }
    }

    /// A run that has found its files and waits for the lock of a folder.
    struct Begun {
        let process: ToolProcess
        let holder: ToolProcess
        fileprivate let tool: ToolFixture

        func release() throws -> ToolRun {
            _ = try holder.finish()
            return try tool.checked(process.finish())
        }
    }

    /// Begins a run, with one job, while another process holds the lock of a folder.
    ///
    /// The search has ended when the run reports a symbolic link.
    func begunWhileFolderIsHeld(_ folder: String, _ arguments: [String]) throws -> Begun {
        try FileManager.default.createSymbolicLink(
            atPath: tool.folder.path("link.db"), withDestinationPath: "\(folder)/app.db")
        let holder = try tool.holdingLock("folder", tool.folder.path(folder))
        let process = try ToolProcess(Programs.tool, whole(arguments) + ["--jobs", "1", "--name", "*.db"])
        while try !process.outputSoFar.contains("link.db") { try #require(process.isRunning) }
        return Begun(process: process, holder: holder, tool: tool)
    }
}

/// The lines that a run on a fleet printed with `--json`.
struct FleetLines {
    /// The counts by name.
    let summary: [String: Int]
    private let lines: [String: [String: Any]]

    init(_ run: ToolRun) throws {
        var lines: [String: [String: Any]] = [:]
        var summary: [String: Int] = [:]
        var paths: [String] = []
        for line in run.output.split(separator: "\n") {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            if let counts = object["summary"] as? [String: Any] {
                summary = counts.filter { !["seconds", "warnings"].contains($0.key) }.compactMapValues { $0 as? Int }
            } else {
                let path = try #require(object["path"] as? String)
                paths.append(path)
                lines[path] = object
            }
        }
        #expect(paths.count == lines.count, "a file has two lines")
        // Paths relative to the test's folder, whose name contains a UUID.
        let strings = lines.map { path, object in
            let parts = path.split(separator: "/").drop { !$0.hasPrefix("cipherstore-test-") }.dropFirst()
            return (parts.isEmpty ? path : parts.joined(separator: "/"), object)
        }
        self.lines = Dictionary(uniqueKeysWithValues: strings)
        self.summary = summary
    }

    subscript(_ path: String) -> [String: Any]? { lines[path] }

    var outcomes: [String: String] { lines.compactMapValues { $0["outcome"] as? String } }

    var errorCodes: [String: String] {
        lines.compactMapValues { ($0["error"] as? [String: Any])?["code"] as? String }
    }
}
