import CipherPlatform
import Foundation

/// How a process ended, and its standard output and standard error.
struct Ending {
    enum Cause: Equatable {
        case exited(Int32)
        case killed(Int32)
        case timedOut
    }

    let cause: Cause
    let output: String
}

/// A program with its arguments, to be run in a separate process.
struct Command: Sendable {
    /// The program and its arguments; a program without a slash is searched for in PATH.
    var words: [String]
    /// Environment variables in addition to this program's.
    var environment: [String: String] = [:]
    /// How long it may run.
    var seconds = 300

    /// Runs it to its end.
    ///
    /// - Parameter output: The file for the output: a pipe would be inherited by other workers' children.
    func run(in session: Session, output: String) throws -> Ending {
        try end(start(in: session, output: output), in: session, output: output)
    }

    /// Starts the command, and returns at once.
    func start(in session: Session, output: String) throws -> pid_t {
        try session.spawn(seconds: seconds) { try spawn(output: output) }
    }

    /// Waits for the end of the process that was started.
    func end(_ process: pid_t, in session: Session, output: String) throws -> Ending {
        let cause = session.wait(process)
        let text = String(decoding: try FileBytes.read(output), as: UTF8.self)
        return Ending(cause: cause, output: text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Foundation's `Process` takes several times as long, which matters for thousands of runs.
    private func spawn(output: String) throws -> pid_t {
        #if canImport(Glibc)
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #else
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var (none, defaults) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&defaults)
        for number in Session.handled { sigaddset(&defaults, number) }
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var values: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) } + [nil]
        defer { (arguments + values).forEach { free($0) } }
        var process: pid_t = 0
        let result = posix_spawnp(&process, words[0], &actions, &attributes, &arguments, &values)
        guard result == 0 else { throw TrialError(detail: "\(words[0]) cannot be run: \(result)") }
        return process
    }
}
