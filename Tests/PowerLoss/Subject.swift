import Foundation

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The CrashSubject executable.
struct Subject {
    let path: String

    /// Runs it and returns what it prints.
    func run(_ arguments: [String]) throws -> String {
        try run(path, arguments)
    }

    /// Runs it with its system calls written to a file.
    func runTraced(_ arguments: [String], to trace: String) throws {
        let calls = SystemCall.traced.map { "?" + $0 }.joined(separator: ",")
        let options = ["-f", "-qq", "-xx", "-s", "16777216", "-o", trace, "-e", "signal=none", "-e", "trace=" + calls]
        let output = try run("/usr/bin/strace", options + [path] + arguments)
        guard FileManager.default.fileExists(atPath: trace) else {
            throw TraceError(detail: "strace wrote nothing: \(output)")
        }
    }

    /// Foundation's `Process` takes several times as long, which thousands of runs feel.
    private func run(_ program: String, _ arguments: [String]) throws -> String {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw TraceError(detail: "no pipe can be had") }
        let output = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        #if canImport(Glibc)
            var actions = posix_spawn_file_actions_t()
        #else
            var actions: posix_spawn_file_actions_t?
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        posix_spawn_file_actions_addclose(&actions, ends[1])
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        var identifier: pid_t = 0
        let result = posix_spawn(&identifier, program, &actions, nil, &words, environ)
        close(ends[1])
        guard result == 0 else { throw TraceError(detail: "\(program) cannot be run") }
        let data = try output.readToEnd() ?? Data()
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        return status & 0x7f == 0 ? text : "killed by signal \(status & 0x7f) \(text)"
    }
}
