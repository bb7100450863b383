import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

/// A finished run of the built tool, as a separate process.
struct ToolRun {
    let status: Int32
    let output: String
    let errors: String

    /// The standard output as a JSON object.
    func object() throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    }

    /// The `code` of the failure that `--json` reports.
    func failureCode() throws -> String {
        let failure = try #require(try object()["error"] as? [String: Any])
        return try #require(failure["code"] as? String)
    }

    /// Runs a program to its end.
    static func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], in folder: String? = nil
    ) throws -> ToolRun {
        try ToolProcess(program, arguments, environment: environment, in: folder).finish()
    }
}

/// A run that has not ended.
///
/// Its outputs go to files, so that a full pipe never stops it.
final class ToolProcess {
    private let process: ChildProcess
    private let streams: TemporaryFolder
    private let input: Pipe?

    init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], in folder: String? = nil,
        keepsInputOpen: Bool = false
    ) throws {
        streams = try TemporaryFolder()
        try streams.write("", to: "output")
        try streams.write("", to: "errors")
        input = keepsInputOpen ? Pipe() : nil
        process = try ChildProcess(
            program, arguments, environment: environment, in: folder ?? ".", input: input?.fileHandleForReading,
            output: FileHandle(forWritingTo: streams.url.appending(path: "output")),
            errors: FileHandle(forWritingTo: streams.url.appending(path: "errors")))
        try input?.fileHandleForReading.close()
    }

    /// Ends a program that may have inherited a mask that blocks all signals.
    func kill() {
        if process.isRunning { _ = CipherPlatform.kill(process.identifier, SIGKILL) }
    }

    var identifier: Int32 { process.identifier }
    var isRunning: Bool { process.isRunning }
    var outputSoFar: String { get throws { try text("output") } }
    var errorsSoFar: String { get throws { try text("errors") } }

    /// Closes the program's input, and waits for its end.
    func finish() throws -> ToolRun {
        try input?.fileHandleForWriting.close()
        let ending = process.wait()
        // A program that a signal ended gets the status that shells give it.
        let base: Int32 = ending.wasKilled ? 1_000 : 0
        var errors = try text("errors")
        if !LinuxCalls.areUsed {
            let lines = errors.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r" }.map(String.init)
            errors = lines.besidesLeases.joined(separator: "\n")
        }
        return ToolRun(
            status: base + ending.status, output: try text("output"),
            errors: errors)
    }

    private func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: streams.url.appending(path: name)), as: UTF8.self)
    }
}

/// The programs that the package builds.
enum Programs {
    static let tool = path("cipherstore")
    static let lockHolder = path("CipherLockHolder")

    /// The programs are in the same folder as the test bundle.
    private static func path(_ name: String) -> String {
        var folders = [URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
        folders += Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() }
        let candidates = folders.map { $0.appending(path: name).path(percentEncoded: false) }
        guard let found = candidates.first(where: FileManager.default.isExecutableFile) else {
            Issue.record("\(name) was not built in the folder of the tests: \(candidates)")
            return name
        }
        return found
    }
}
