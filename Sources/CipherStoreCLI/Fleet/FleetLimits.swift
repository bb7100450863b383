internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The limits on the resources that a run may use.
enum FleetLimits {
    /// The maximum number of files that one job has open, as measured, with a margin.
    private static let filesOfJob = 12
    /// The number of other files that the run has open: its streams, the reports, the folder that is searched.
    private static let filesBesides = 16

    /// Lowers the priority of this process and the number of files that it may have open, as the options request.
    ///
    /// Must be called before any other thread is started, because a priority belongs to a thread.
    ///
    /// - Returns: The number of jobs that may run.
    /// - Throws: ``CommandFailure`` with the code `usage`; ``StoreError`` if the system does not allow a limit.
    static func apply(_ invocation: Invocation) throws -> Int {
        if invocation.has(FleetOptions.nice) {
            let least = try invocation.count(FleetOptions.nice, default: 1)
            guard least <= 19 else { throw CommandFailure.usage("--nice must be a number from 1 to 19") }
            // -1 may be a valid priority, so only `errno` indicates a failure.
            errno = 0
            guard nice(Int32(least)) != -1 || errno == 0 else {
                throw StoreError(
                    .permission, "the priority of the process could not be lowered",
                    advice: "run the command without --nice")
            }
        }
        let jobs = try FleetOptions.jobs(invocation)
        guard invocation.has(FleetOptions.maxOpen) else { return jobs }
        let most = try invocation.count(FleetOptions.maxOpen, default: 0)
        let possible = try Self.jobs(openingAtMost: most)
        try limitOpenFiles(most)
        return min(jobs, possible)
    }

    /// Returns the number of jobs that together have no more files open.
    private static func jobs(openingAtMost most: Int) throws -> Int {
        // Half is for old files that stay locked if the system does not report who else has them open.
        let possible = (most / 2 - filesBesides) / filesOfJob
        guard possible > 0 else {
            throw CommandFailure.usage(
                "--max-open must be at least \(2 * (filesBesides + filesOfJob)), because one job can have that many "
                    + "files open")
        }
        return possible
    }

    private static func limitOpenFiles(_ most: Int) throws {
        guard cs_limit_open_files(Int32(most)) == 0 else {
            throw StoreError(
                .permission, "the limit on open files could not be set",
                advice: "run the command without --max-open")
        }
    }

    /// Limits the files that a worker process may have open to its share of those that the run may have open.
    static func shareOpenFiles(_ invocation: Invocation) throws {
        guard invocation.has(FleetOptions.maxOpen) else { return }
        let most = try invocation.count(FleetOptions.maxOpen, default: 0)
        try limitOpenFiles((most - filesBesides) / min(FleetOptions.jobs(invocation), jobs(openingAtMost: most)))
    }
}

/// Limits the average number of bytes per second of the files that jobs start.
///
/// A file that was started is not slowed down, because its users wait for it.
// Unchecked, but thread-safe: `free` is read and written only under `lock`.
final class FleetPace: @unchecked Sendable {
    private let bytesPerSecond: Double
    private let cancellation: UpgradeCancellation
    private let lock = Lock()
    /// The time at which the next file may start.
    private var free = ContinuousClock.now

    init(bytesPerSecond: Double, cancellation: UpgradeCancellation) {
        self.bytesPerSecond = bytesPerSecond
        self.cancellation = cancellation
    }

    /// Waits until a file of this size may start, or the run is canceled.
    func wait(for bytes: Int64) {
        UpgradeCancellation.waking(lock, cancellation) {
            let begin = max(free, .now)
            free = begin + .seconds(min(86_400 * 365, Double(bytes) / bytesPerSecond))
            while !cancellation.isCancelled, lock.wait(until: begin) || .now < begin {}
        }
    }
}
