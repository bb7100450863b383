import Foundation

/// The result of a program that ran to its end, and the resources that it used.
struct ChildProcess {
    let output: Data
    let seconds: Double
    /// The peak memory use of the program.
    let peakMegabytes: Double

    /// - Parameter input: A file for the program's standard input.
    static func run(_ program: String, _ arguments: [String], input: String = "/dev/null") throws -> ChildProcess {
        let output = FileManager.default.temporaryDirectory.appending(path: "bench-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: output) }
        var status: Int32 = 0
        // Foundation's `Process` reaps the child itself, so its resource usage would be lost.
        var usage = rusage()
        let seconds = try Measurement.seconds {
            let child = try spawn(program, arguments, input: input, output: output.path(percentEncoded: false))
            guard wait4(child, &status, 0, &usage) == child else { throw BenchmarkFailure("\(program) did not end") }
        }
        guard status == 0 else {
            throw BenchmarkFailure("\(program) \(arguments.first ?? "") failed with status \(status)")
        }
        return ChildProcess(
            output: try Data(contentsOf: output), seconds: seconds, peakMegabytes: Double(usage.ru_maxrss) / 1024)
    }

    private static func spawn(
        _ program: String, _ arguments: [String], input: String, output: String
    ) throws -> pid_t {
        var files = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&files)
        defer { posix_spawn_file_actions_destroy(&files) }
        posix_spawn_file_actions_addopen(&files, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&files, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0)
        let words = ([program] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, program, &files, nil, words + [nil], environ)
        guard code == 0 else { throw BenchmarkFailure("\(program) cannot be run: \(String(cString: strerror(code)))") }
        return child
    }
}
