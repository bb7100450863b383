import CCipherSubjectShims
import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

/// A run of the tool whose standard input is a terminal.
final class TerminalRun {
    /// The end that a terminal window would have.
    private let main: Int32
    private let process: ChildProcess
    private let streams: TemporaryFolder

    /// - Parameter controls: Whether the terminal controls the tool, so that typed characters become signals.
    init(_ arguments: [String], controls: Bool = false) throws {
        streams = try TemporaryFolder()
        for name in ["output", "errors"] { try streams.write("", to: name) }
        var terminal: Int32 = -1
        main = tm_open(&terminal)
        try #require(main >= 0)
        // Swift's backtraces would catch SIGQUIT, after which the process goes on.
        process = try ChildProcess(
            controls ? "/usr/bin/setsid" : Programs.tool,
            (controls ? ["--ctty", "--wait", Programs.tool] : []) + arguments,
            environment: ["SWIFT_BACKTRACE": "enable=no"],
            input: FileHandle(fileDescriptor: terminal, closeOnDealloc: true),
            output: FileHandle(forWritingTo: streams.url.appending(path: "output")),
            errors: FileHandle(forWritingTo: streams.url.appending(path: "errors")))
    }

    deinit {
        if process.isRunning { _ = kill(process.identifier, SIGKILL) }
        close(main)
    }

    var identifier: Int32 { process.identifier }
    var errorsSoFar: String {
        get throws { String(decoding: try Data(contentsOf: streams.url.appending(path: "errors")), as: UTF8.self) }
    }

    /// Whether the terminal shows what is typed.
    var echoes: Bool {
        get throws {
            var settings = termios()
            try #require(tcgetattr(main, &settings) == 0)
            return settings.c_lflag & tcflag_t(ECHO) != 0
        }
    }

    /// Waits until the tool has printed a text that many times.
    func wait(for text: String, times: Int = 1) throws {
        while try errorsSoFar.components(separatedBy: text).count <= times {
            try #require(process.isRunning, "the tool ended early")
        }
    }

    /// Waits until a signal has stopped the tool: one that continues it has no effect before.
    func waitUntilStopped() throws {
        var state = siginfo_t()
        let events = WSTOPPED | WEXITED | WNOWAIT
        while waitid(P_PID, id_t(identifier), &state, events) != 0 { try #require(errno == EINTR) }
        try #require(state.si_code == CLD_STOPPED, "the tool ended early")
    }

    /// Types bytes once the tool asks for the key.
    func type(_ bytes: [UInt8], at prompt: String = "Key: ") throws {
        try wait(for: prompt)
        try #require(write(main, bytes, bytes.count) == bytes.count)
    }

    func type(_ text: String, at prompt: String = "Key: ") throws { try type(Array(text.utf8), at: prompt) }

    /// Waits for the end of the run.
    ///
    /// - Returns: Its status; for a run that a signal ended, 1000 plus the number of the signal.
    func finish() throws -> ToolRun {
        let ending = process.wait()
        return ToolRun(status: (ending.wasKilled ? 1_000 : 0) + ending.status, output: "", errors: try errorsSoFar)
    }
}
