#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The jobs within which code runs: what a key provider or a hook of an app begins, it begins within the job that called it.
///
/// Known on the thread of the job, on threads that ``DetachedThread`` starts, and in tasks that are begun with `Task`; not in
/// detached tasks, nor on threads and queues of the app's own.
package struct EnclosingJobs: Sendable {
    /// Something that runs, known by its identity.
    package final class Job: Sendable {
        package init() {}

        /// Runs `body` within this job, besides those around it.
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

    /// Those of the code that asks.
    @TaskLocal package static var current = EnclosingJobs()

    private var entries: [Entry] = []

    /// Whether the code runs within a job, which may not wait for it.
    package func contains(_ job: Job) -> Bool { entries.contains { $0.job === job } }

    /// Whether a job waits for the thread that asks.
    package func waits(_ job: Job) -> Bool {
        entries.contains { $0.job === job && $0.thread == Self.thisThread }
    }

    /// The same for a thread that `starter` waits for.
    func handedOn(from starter: UInt) -> EnclosingJobs {
        var jobs = self
        for index in entries.indices where entries[index].thread == starter {
            jobs.entries[index].thread = Self.thisThread
        }
        return jobs
    }

    static var thisThread: UInt {
        #if canImport(Glibc)
            pthread_self()
        #else
            UInt(bitPattern: pthread_self())
        #endif
    }
}
