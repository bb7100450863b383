import Foundation

/// strace, which traces system calls and also injects faults.
enum Strace {
    static func requireInstalled() throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") else {
            throw TrialError(detail: "strace is needed; on Debian: apt-get install strace")
        }
    }

    /// Returns a command in which a call fails, or seems to succeed.
    ///
    /// It stops only at the calls that are named.
    ///
    /// - Parameters:
    ///   - effect: What the call returns, such as `error=EIO`.
    ///   - options: The files whose calls count.
    static func injecting(
        _ effect: String, at call: String, _ number: Int, _ options: [String], _ command: Command
    ) -> Command {
        let injection = ["-e", "trace=\(call)", "-e", "inject=\(call):\(effect):when=\(number)"]
        return traced(["--seccomp-bpf", "-o", "/dev/null"] + options + injection, command)
    }

    /// Returns a command that gets a signal when one of its threads begins its Nth call of a kind.
    ///
    /// It stops at every call: with `--seccomp-bpf`, strace 6.1 loses the signal.
    static func sending(
        _ signal: String, at call: String, _ number: Int, to trace: String = "/dev/null", _ command: Command
    ) -> Command {
        let injection = "inject=\(call):signal=\(signal):when=\(number)"
        return traced(["-o", trace, "-e", "trace=\(call)", "-e", injection], command)
    }

    /// Returns a command whose calls are written to a file.
    ///
    /// It stops at every call, so that its threads always alternate in the same way.
    static func recording(_ options: [String], to trace: String, _ command: Command) -> Command {
        traced(["-o", trace] + options, command)
    }

    private static func traced(_ options: [String], _ command: Command) -> Command {
        var traced = command
        traced.words = ["/usr/bin/strace", "-f", "-qq"] + options + command.words
        return traced
    }

    /// Returns how often one thread made a call, at most: strace counts for each thread separately.
    static func mostCalls(_ trace: String) throws -> Int {
        var counts: [Substring: Int] = [:]
        for line in try text(trace).split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            guard words.count == 2, let first = words[1].drop(while: { $0 == " " }).first, first.isLetter else {
                continue
            }
            counts[words[0], default: 0] += 1
        }
        return counts.values.max() ?? 0
    }

    static func text(_ trace: String) throws -> String {
        String(decoding: try FileBytes.read(trace), as: UTF8.self)
    }
}
