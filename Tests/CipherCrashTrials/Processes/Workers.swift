import Foundation

/// A worker that takes jobs, with its own files in the work folder.
struct Worker: Sendable {
    let session: Session
    let number: Int

    /// The folder of the database under test.
    var folder: String { session.folder + "/run.\(number)" }
    /// The file with the output of the last process.
    var output: String { folder + ".output" }
    /// The file with the system calls of the last traced run.
    var trace: String { folder + ".trace" }
    /// A folder for inspecting a single file.
    var look: String { folder + ".file" }

    func run(_ command: Command) throws -> Ending {
        try command.run(in: session, output: output)
    }
}

/// When no further trial begins.
struct Deadline: Sendable {
    let seconds: Int
    private let end: ContinuousClock.Instant

    init(seconds: Int) {
        self.seconds = seconds
        end = .now + .seconds(seconds)
    }

    var isPast: Bool { ContinuousClock.now >= end }
}

/// Runs jobs in parallel, in their order, three for each processor, because a traced run spends half of its time
/// waiting.
enum Workers {
    private struct State<Job> {
        var jobs: ArraySlice<Job>
        var failure: (any Error)?
    }

    /// Returns when all jobs are done, or throws the first failure.
    static func run<Job: Sendable>(
        _ jobs: [Job], in session: Session, _ body: @escaping @Sendable (Job, Worker) throws -> Void
    ) throws {
        let state = Locked(State(jobs: jobs[...]))
        let group = DispatchGroup()
        for number in 0..<3 * ProcessInfo.processInfo.activeProcessorCount {
            group.enter()
            let thread = Thread {
                while let job = state.with({ $0.failure == nil ? $0.jobs.popFirst() : nil }) {
                    do {
                        try body(job, Worker(session: session, number: number))
                    } catch {
                        state.with { $0.failure = $0.failure ?? error }
                    }
                }
                group.leave()
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
        group.wait()
        if let failure = state.with({ $0.failure }) { throw failure }
    }
}
