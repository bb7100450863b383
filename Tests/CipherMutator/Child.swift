import CipherTestSupport
import Foundation

/// A run of another program, with limits on its time and memory.
struct Child {
    /// The standard output.
    let output: String
    let errors: String
    /// The exit status; 128 or more for a signal, 137 for a run that did not end in time.
    let status: Int32

    /// This program.
    static let mutator = URL(filePath: CommandLine.arguments[0]).path(percentEncoded: false)
    /// The command-line tool, which is built beside this program.
    static let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "cipherstore").path(percentEncoded: false)

    /// The most memory that a run may allocate, in KiB; further allocations fail.
    private static let memory = 3_000_000
    /// The longest time that a run may take, in seconds.
    private static let seconds = isSanitized ? 300 : 20
    /// A sanitizer maps more memory than any limit allows, and makes runs slower.
    private static var isSanitized: Bool {
        let environment = ProcessInfo.processInfo.environment
        return environment["ASAN_OPTIONS"] != nil || environment["TSAN_OPTIONS"] != nil
    }

    static func run(_ program: String, _ arguments: [String], in folder: String? = nil) throws -> Child {
        let (output, errors) = (Pipe(), Pipe())
        let limits = isSanitized ? "" : "ulimit -f 2097152; ulimit -v \(memory);"
        let process = try ChildProcess(
            "/bin/sh",
            ["-c", "ulimit -c 0; \(limits) exec timeout -s KILL \(seconds) \"$@\" 2>&1", "sh", program] + arguments,
            in: folder ?? ".", output: output.fileHandleForWriting, errors: errors.fileHandleForWriting)
        for pipe in [output, errors] { try pipe.fileHandleForWriting.close() }
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        let errorData = try errors.fileHandleForReading.readToEnd() ?? Data()
        let ending = process.wait()
        return Child(
            output: String(decoding: data, as: UTF8.self), errors: String(decoding: errorData, as: UTF8.self),
            status: ending.wasKilled ? 128 + ending.status : ending.status)
    }
}

/// Writes a line immediately, so that it is not lost if this process is killed.
func tell(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
