internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// What a run may take from the machine.
enum FleetLimits {
    /// The most files that one job has open, as measured, and some more.
    private static let filesOfJob = 12
    /// What the process has open besides: its streams, reports, the folder that is searched.
    private static let filesBesides = 16

    /// Lowers the priority of this process and the number of files that it may have open, as the options say.
    ///
    /// Called before any other thread is started, for a priority is a thread's.
    ///
    /// - Returns: How many jobs there may be.
    /// - Throws: ``CommandFailure`` with `usage`; ``StoreError`` where the system refuses.
    static func apply(_ invocation: Invocation) throws -> Int {
        if invocation.has(FleetOptions.nice) {
            let least = try invocation.count(FleetOptions.nice, default: 1)
            guard least <= 19 else { throw CommandFailure.usage("--nice takes a number from 1 to 19") }
            // -1 may be a priority: only `errno` tells.
            errno = 0
            guard nice(Int32(least)) != -1 || errno == 0 else {
                throw StoreError(.permission, "the system refuses to lower the priority", advice: "leave out --nice")
            }
        }
        let jobs = try FleetOptions.jobs(invocation)
        guard invocation.has(FleetOptions.maxOpen) else { return jobs }
        let most = try invocation.count(FleetOptions.maxOpen, default: 0)
        // Half is for old files that stay locked where the system does not tell who else has them open.
        let possible = (most / 2 - filesBesides) / filesOfJob
        guard possible > 0 else {
            throw CommandFailure.usage(
                "--max-open takes a number from \(2 * (filesBesides + filesOfJob)) up, for one job needs so many")
        }
        guard cs_limit_open_files(Int32(most)) == 0 else {
            throw StoreError(.permission, "the system refuses to limit open files", advice: "leave out --max-open")
        }
        return min(jobs, possible)
    }
}

/// Lets jobs begin files of so many bytes a second on average.
///
/// A file that was begun is not slowed down, for its users wait for it.
// Unchecked, and safe between threads: `free` is read and written only under `lock`.
final class FleetPace: @unchecked Sendable {
    private let bytesPerSecond: Double
    private let cancellation: UpgradeCancellation
    private let lock = Lock()
    /// When the next file may begin.
    private var free = ContinuousClock.now

    init(bytesPerSecond: Double, cancellation: UpgradeCancellation) {
        self.bytesPerSecond = bytesPerSecond
        self.cancellation = cancellation
    }

    /// Waits until a file of that size may begin, or the run is to end.
    func wait(for bytes: Int64) {
        UpgradeCancellation.waking(lock, cancellation) {
            let begin = max(free, .now)
            free = begin + .seconds(min(86_400 * 365, Double(bytes) / bytesPerSecond))
            while !cancellation.isCancelled, lock.wait(until: begin) || .now < begin {}
        }
    }
}
