import CipherPlatform

/// A run that is stopped when it begins a call, and continues after something was done to its files.
struct StoppedRun {
    let worker: Worker

    /// After how many seconds a run counts as hanging.
    private static let limit = 30

    /// Runs a command to its end.
    ///
    /// - Parameter body: What is done when the run is stopped for the first time.
    /// - Returns: How the run ended; `nil` if it was never stopped.
    func run(_ command: Command, at call: String, _ number: Int, _ body: () throws -> Void) throws -> Ending? {
        let pipe = worker.folder + ".fifo"
        unlink(pipe)
        guard mkfifo(pipe, 0o600) == 0 else { throw TrialError(detail: "\(pipe) cannot be created: \(errno)") }
        let descriptor = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw TrialError(detail: "\(pipe) cannot be opened: \(errno)") }
        defer { close(descriptor) }
        var traced = Strace.sending("SIGSTOP", at: call, number, to: pipe, command)
        traced.seconds = Self.limit
        let process = try traced.start(in: worker.session, output: worker.output)
        var wasStopped = false
        try forEachLine(descriptor, of: process) { line in
            guard line.contains("stopped by SIGSTOP"), let stopped = pid_t(line.prefix { $0 != " " }) else { return }
            if !wasStopped {
                wasStopped = true
                try body()
            }
            kill(stopped, SIGCONT)
        }
        let ending = try traced.end(process, in: worker.session, output: worker.output)
        return wasStopped ? ending : nil
    }

    /// Reads strace's output until it ends.
    private func forEachLine(_ descriptor: Int32, of process: pid_t, _ body: (Substring) throws -> Void) throws {
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&event, 1, 500)
            if count == 0 {
                // If strace ended before it opened the pipe, nobody closes the pipe.
                if Session.hasEnded(process) { return }
                continue
            }
            let size = read(descriptor, &buffer, buffer.count)
            if size < 0, errno == EINTR || errno == EAGAIN { continue }
            guard size > 0 else { return }
            text += String(decoding: buffer[..<size], as: UTF8.self)
            while let end = text.firstIndex(of: "\n") {
                try body(text[..<end])
                text = String(text[text.index(after: end)...])
            }
        }
    }
}
