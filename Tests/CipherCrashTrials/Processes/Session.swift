import CipherPlatform
import Foundation

/// The work folder and the processes that this program started, which must end with it.
///
/// An interrupt kills the processes, removes the folder and exits. A process that exceeds its time is killed.
final class Session: Sendable {
    /// The work folder, without symbolic links in its path.
    let folder: String

    private struct State {
        /// The deadlines of the running processes.
        ///
        /// Each process leads a process group.
        var running: [pid_t: ContinuousClock.Instant] = [:]
        var late: Set<pid_t> = []
        var isEnding = false
    }

    private static let interrupts = [SIGINT, SIGTERM, SIGHUP]
    /// The signals that this program handles itself, and that end its children as usual.
    static let handled = interrupts + [SIGPIPE]
    private let state = Locked(State())
    private let queue = DispatchQueue(label: "session")
    private let sources = Locked<[any DispatchSourceProtocol]>([])

    /// Creates the work folder, in memory if possible.
    ///
    /// The trials test the calls, and in memory a sync costs nothing.
    init() throws {
        let parents = ["/dev/shm", ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp", "/tmp"]
        var made: String?
        for parent in parents where made == nil {
            // mkdtemp(3) replaces the Xs with unique characters. A folder whose name is not UTF-8 is not found under
            // this text, so the next one is taken.
            var template = Array((parent + "/crash-trials.XXXXXX").utf8CString)
            if let path = mkdtemp(&template).flatMap({ realpath($0, nil) }) {
                made = String(cString: path)
                free(path)
            }
        }
        guard let made else { throw TrialError(detail: "the work folder cannot be created") }
        folder = made
        watch()
    }

    /// Removes the work folder.
    func end() {
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Starts a process in its own process group.
    ///
    /// - Parameter start: Starts the process. Only one starts at a time: a file that one worker has open must not stay
    ///   open in a child that another worker starts, because a conversion asks the system who has its file open.
    func spawn(seconds: Int, _ start: () throws -> pid_t) throws -> pid_t {
        let process: pid_t? = try state.with { state in
            guard !state.isEnding else { return nil }
            let process = try start()
            state.running[process] = .now + .seconds(seconds)
            return process
        }
        guard let process else {
            // The program exits now.
            while true { pause() }
        }
        return process
    }

    /// Returns whether a process that was started has ended, and nobody has waited for it yet.
    static func hasEnded(_ process: pid_t) -> Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT | WNOHANG) == 0
            && information.si_signo == SIGCHLD
    }

    /// Kills a process that was started and that nobody has waited for yet, with its group.
    static func killGroup(of process: pid_t) {
        kill(-process, SIGKILL)
    }

    /// Waits for the end of a process, ends the rest of its group, and returns how the process ended.
    func wait(_ process: pid_t) -> Ending.Cause {
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // Its ID cannot belong to another process before it is reaped.
        Self.killGroup(of: process)
        let isLate = state.with { state in
            state.running[process] = nil
            return state.late.remove(process) != nil
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        if isLate { return .timedOut }
        return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .killed(status & 0x7f)
    }

    private func watch() {
        var started: [any DispatchSourceProtocol] = []
        for number in Self.handled { signal(number, SIG_IGN) }
        for number in Self.interrupts {
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { self.interrupt(number) }
            started.append(source)
        }
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { self.killLate() }
        started.append(timer)
        for source in started { source.resume() }
        sources.with { $0 = started }
    }

    private func killLate() {
        state.with { state in
            for (process, deadline) in state.running where deadline < .now {
                state.late.insert(process)
                Self.killGroup(of: process)
            }
        }
    }

    private func interrupt(_ number: Int32) {
        state.with { state in
            state.isEnding = true
            for process in state.running.keys { Self.killGroup(of: process) }
        }
        // A worker may still be writing to the folder.
        for _ in 0..<100 where access(folder, F_OK) == 0 { end() }
        _exit(128 + number)
    }
}

/// A value that threads share.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try lock.withLock { try body(&value) }
    }
}
