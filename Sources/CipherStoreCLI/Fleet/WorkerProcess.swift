internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherPrimitives

/// A child process that works on one file after another, as ``FleetWorker`` describes.
///
/// A file that crashes the process or exceeds a limit costs only that file. One thread uses an object.
final class WorkerProcess {
    private let process: pid_t
    private let channel: FleetChannel
    private let limits: FileLimits
    private var hasEnded = false

    /// Starts a process.
    ///
    /// - Parameter key: The key that the run read from standard input; `nil` if it read none.
    /// - Throws: ``StoreError`` with the code `inputOutput` if the system cannot start the process.
    init(_ limits: FileLimits, key: SecretBytes?) throws {
        let line = ["cipherstore", ThisProcess.workerWord] + ThisProcess.arguments
        var words: [UnsafeMutablePointer<CChar>?] = line.map { $0.withSystemPath { strdup($0) } }
        words.append(nil)
        defer { for word in words { free(word) } }
        var child = cs_child()
        let result = cs_child_start(words, &child)
        guard result == 0 else {
            throw StoreError(
                .inputOutput, "a process for the files could not be started: \(String(cString: strerror(result)))",
                advice: "check the limits on processes and memory, and try again")
        }
        process = child.process
        channel = FleetChannel(child.channel)
        self.limits = limits
        // The process reads the key as this run did. If it has ended already, its first file reports that.
        _ = key?.withUnsafeBytes { FileDescriptorStream.writeAll($0, to: child.input) }
        close(child.input)
    }

    deinit { end() }

    /// Returns whether the process waits for its next file.
    var isReady: Bool {
        // A process that waits says nothing; at its end, there is something to read.
        var state = [pollfd(fd: channel.socket, events: Int16(POLLIN), revents: 0)]
        return !hasEnded && poll(&state, 1, 0) == 0
    }

    /// Has a file processed.
    ///
    /// - Parameter folder: The locked descriptor of the file's folder; -1 if it is not locked.
    /// - Returns: `nil` if another process must work on the file, because this one keeps too many others locked.
    /// - Throws: ``CommandFailure`` if the process ended or had to be ended; ``StoreError`` with the code `cancelled`.
    func process(
        _ job: FleetJob, folder: Int32, cancellation: UpgradeCancellation, progress: (Double) -> Void
    ) throws -> FleetResult? {
        var isAlive = channel.send(FleetRequest.process(job), descriptor: folder)
        var left = limits.wallSeconds(bytes: job.bytes).map(Double.init) ?? .infinity
        var isCancelled = false
        while isAlive, left > 0 {
            if let answer = try nextAnswer(job) {
                switch answer {
                case .progress(let fraction): progress(fraction)
                case .result(let result): return result
                case .full: return nil
                case .unable(let failure):
                    return FleetResult(.failed, "failed", path: job.paths.database, failure: failure)
                }
                continue
            }
            if !isCancelled, cancellation.isCancelled {
                isCancelled = true
                left = min(left, FileLimits.grace)
                channel.send(FleetRequest.cancel)
            }
            let began = SuspendingClock.now
            if wait(forSignals: !isCancelled) { isAlive = channel.receive() }
            // The time in which this process was stopped, for example with Ctrl-Z, does not count.
            left -= min(1, (SuspendingClock.now - began).inSeconds)
        }
        let status = end(killing: isAlive)
        if isCancelled { throw StoreError.cancelled(job.paths.database) }
        throw failure(job, status: status, isWallTime: isAlive)
    }

    private func nextAnswer(_ job: FleetJob) throws -> FleetAnswer? {
        do {
            return try channel.next(FleetAnswer.self)
        } catch {
            throw limits.crash(job.paths.database, status: end(killing: true))
        }
    }

    private func failure(_ job: FleetJob, status: Int32, isWallTime: Bool) -> CommandFailure {
        let path = job.paths.database
        guard isWallTime || status & 0x7f == SIGXCPU else { return limits.crash(path, status: status) }
        return limits.timeFailure(path, bytes: job.bytes, isWallTime: isWallTime)
    }

    /// Waits for a message, for a signal to this run, or for a second; returns whether there is a message, or the end.
    private func wait(forSignals: Bool) -> Bool {
        var states = [
            pollfd(fd: channel.socket, events: Int16(POLLIN), revents: 0),
            pollfd(fd: forSignals ? SignalWatch.alarm : -1, events: Int16(POLLIN), revents: 0),
        ]
        return poll(&states, 2, 1_000) > 0 && states[0].revents != 0
    }

    /// Ends the process, which ends by itself when the socket is closed, and returns the status of its end.
    @discardableResult
    private func end(killing: Bool = false) -> Int32 {
        guard !hasEnded else { return 0 }
        hasEnded = true
        if killing { kill(process, SIGKILL) } else { shutdown(channel.socket, Int32(SHUT_RDWR)) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}

/// The worker process of one job, which is started for the first file, and again for the next file after it has ended
/// or keeps too many files locked.
// Unchecked, but thread-safe: only the thread of its job uses it, and the main thread after that one has ended.
final class WorkerSeat: @unchecked Sendable {
    private let limits: FileLimits
    private let key: SecretBytes?
    private var worker: WorkerProcess?
    /// The processes that only keep files locked.
    private var full: [WorkerProcess] = []

    init(_ limits: FileLimits, key: SecretBytes?) {
        self.limits = limits
        self.key = key
    }

    /// Has a file processed; see ``WorkerProcess/process(_:folder:cancellation:progress:)``.
    func process(
        _ job: FleetJob, folder: Int32, cancellation: UpgradeCancellation, progress: (Double) -> Void
    ) throws -> FleetResult {
        while true {
            let ready = try worker.flatMap { $0.isReady ? $0 : nil } ?? WorkerProcess(limits, key: key)
            worker = ready
            let result = try ready.process(job, folder: folder, cancellation: cancellation, progress: progress)
            if let result { return result }
            full.append(ready)
            worker = nil
        }
    }

    /// Ends the processes, and waits for their end.
    func end() { (worker, full) = (nil, []) }
}
