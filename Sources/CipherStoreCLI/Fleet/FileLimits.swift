internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The limits on what the work on one file of a fleet may use, so that no file can exhaust the machine.
struct FileLimits: Sendable {
    static let memory = Option(
        "memory-limit", value: "MIB",
        "With --recursive: let each file use at most this much memory, in MiB (default: \(usualMemory); 0 for no "
            + "limit). A file that needs more is a failure. Has no effect on Apple platforms.")
    static let time = Option(
        "time-limit", value: "SECONDS",
        "With --recursive: let each file use at most this much processor time, and \(secondsPerMegabyte) s more for "
            + "each MB of its size (default: \(usualSeconds) s; 0 for no limit). A file that needs more is a failure.")

    private static let usualMemory = 512
    /// What the program itself needs, with a margin; a worker with less could not even begin.
    private static let leastMemory = 64
    private static let usualSeconds = 60
    /// A conversion takes about 0.012 s of processor time for each MB.
    private static let secondsPerMegabyte = 10
    /// The wall time that a file may take for each second of its processor time, on a machine that is busy with other
    /// work or has a slow disk.
    private static let wallFactor = 10
    /// How long a worker has to restore its file after a signal, in seconds.
    ///
    /// Schedulers kill the whole run about a minute after the signal.
    static let grace = 30.0

    /// In MiB; 0 for no limit.
    let memory: Int
    /// In seconds; 0 for no limit.
    private let seconds: Int
    /// How long a file may wait for other connections, in seconds.
    private let waiting: Int

    init(_ invocation: Invocation) throws {
        memory = try invocation.mebibytes(Self.memory, default: Self.usualMemory) >> 20
        guard memory == 0 || memory >= Self.leastMemory else {
            throw CommandFailure.usage("--\(Self.memory.name) must be 0, or at least \(Self.leastMemory) MiB")
        }
        seconds = try invocation.count(Self.time, default: Self.usualSeconds, from: 0)
        waiting = Int(try UpgradeOptions.waiting(invocation).busyTimeout.inSeconds)
    }

    /// Returns the processor time that a file may use, in seconds; `nil` for no limit.
    func processorSeconds(bytes: Int64) -> Int? {
        seconds == 0 ? nil : seconds + Int(bytes / 1_000_000) * Self.secondsPerMegabyte
    }

    /// Returns the wall time that a file may take, in seconds; `nil` for no limit.
    func wallSeconds(bytes: Int64) -> Int? {
        processorSeconds(bytes: bytes).map { $0 * Self.wallFactor + waiting }
    }

    /// Limits the memory of this process.
    func limitMemory() throws {
        // Sealing may start a thread for each processor, and the system counts the whole stack of each.
        let stacks = ProcessInfo.processInfo.activeProcessorCount * 4 << 20
        guard memory > 0, cs_limit_memory(Int64(memory << 20 + stacks)) != 0 else { return }
        throw StoreError(
            .permission, "the memory of the process could not be limited",
            advice: "run the command with --\(Self.memory.name) 0")
    }

    /// Limits the processor time of this process from now on.
    func limitProcessorTime(bytes: Int64) throws {
        guard let seconds = processorSeconds(bytes: bytes), cs_limit_processor_time(Int64(seconds)) != 0 else { return }
        throw StoreError(
            .permission, "the processor time of the process could not be limited",
            advice: "run the command with --\(Self.time.name) 0")
    }
}

// What a file that exceeds a limit, or crashes its process, costs: a line of the report.
extension FileLimits {
    /// Returns the failure of a file that used up the memory limit.
    func memoryFailure(_ path: String) -> CommandFailure {
        CommandFailure(
            .internalFailure, "memoryLimit", path: path,
            "this file needs more memory than the limit for each file, \(memory) MiB",
            advice: "\(Self.complete); if you trust the file, raise the limit with --\(Self.memory.name)")
    }

    /// Returns the failure of a file that used up the processor time, or took far too long.
    func timeFailure(_ path: String, bytes: Int64, isWallTime: Bool) -> CommandFailure {
        let limit = (isWallTime ? wallSeconds(bytes: bytes) : processorSeconds(bytes: bytes)) ?? 0
        return CommandFailure(
            .internalFailure, "timeLimit", path: path,
            "this file needs more time than the limit for a file of its size, \(limit) s"
                + (isWallTime ? "" : " of processor time"),
            advice: "\(Self.complete)\(Self.cleanUp); if you trust the file, raise the limit with --\(Self.time.name)")
    }

    /// Returns the failure of a file whose process ended otherwise.
    ///
    /// - Parameter status: The status that `waitpid` returned.
    func crash(_ path: String, status: Int32) -> CommandFailure {
        CommandFailure(
            .internalFailure, "crashed", path: path,
            "the process that worked on this file ended unexpectedly, \(Self.description(status))",
            advice: Self.complete + Self.cleanUp
                + (memory > 0 ? "; it may also have needed more memory than --\(Self.memory.name) allows" : ""))
    }

    /// Describes the status that `waitpid` returned, as wait(2) defines it.
    private static func description(_ status: Int32) -> String {
        let signal = status & 0x7f
        guard signal != 0 else { return "with exit status \(status >> 8 & 0xff)" }
        return "by signal \(signal) (\(strsignal(signal).map { String(cString: $0) } ?? "unknown"))"
    }

    private static let complete = "the database is complete, either as it was or as it should become"
    /// A process that ended at once could not clean up.
    private static let cleanUp = "; the next run removes what is left beside it"
}
