internal import CipherPlatform

/// The jobs within which code runs.
///
/// Work that an app's key provider or hook starts runs within the job that called the provider or hook.
///
/// The jobs are known on the job's thread, on threads that ``DetachedThread`` starts, and in tasks started with `Task`,
/// but not in detached tasks or on the app's own threads and queues.
package struct EnclosingJobs: Sendable {
    /// A running operation, identified by its object identity.
    package final class Job: Sendable {
        package init() {}

        /// Runs `body` within this job, in addition to the enclosing ones.
        package func run<Result>(_ body: () throws -> Result) rethrows -> Result {
            var jobs = EnclosingJobs.current
            jobs.entries.append(Entry(job: self, thread: EnclosingJobs.thisThread))
            return try EnclosingJobs.$current.withValue(jobs, operation: body)
        }
    }

    private struct Entry: Sendable {
        let job: Job
        /// The thread whose work the job waits for.
        var thread: UInt
    }

    /// The jobs of the calling code.
    @TaskLocal package static var current = EnclosingJobs()

    private var entries: [Entry] = []

    /// Returns whether the calling code runs within a job, and therefore must not wait for it.
    package func contains(_ job: Job) -> Bool { entries.contains { $0.job === job } }

    /// Returns whether a job waits for the calling thread.
    package func waits(_ job: Job) -> Bool {
        entries.contains { $0.job === job && $0.thread == Self.thisThread }
    }

    /// Returns these jobs with the thread `starter` replaced by the calling thread, for which `starter` waits.
    func handedOn(from starter: UInt) -> EnclosingJobs {
        var jobs = self
        for index in entries.indices where entries[index].thread == starter {
            jobs.entries[index].thread = Self.thisThread
        }
        return jobs
    }

    static var thisThread: UInt { threadIdentity() }
}
