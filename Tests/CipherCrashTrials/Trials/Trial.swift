/// The data that all trials of a run share.
struct Harness: Sendable {
    let session: Session
    let subject: Subject
    let starts: StartingFiles
    let settled = Settled()

    /// - Parameter isRepeatable: Whether the subject's random numbers and clock are fixed.
    init(in session: Session, isRepeatable: Bool) throws {
        try Strace.requireInstalled()
        self.session = session
        subject = try Subject(in: session, isRepeatable: isRepeatable)
        starts = try StartingFiles(subject, in: session)
    }
}

/// One scenario in one worker's folder: it is set up, run with a disturbance, and judged.
struct Trial {
    let harness: Harness
    let scenario: Scenario
    let start: FolderState
    let worker: Worker

    init(_ harness: Harness, _ scenario: Scenario, _ worker: Worker) throws {
        self.harness = harness
        self.scenario = scenario
        self.worker = worker
        start = try harness.starts[scenario.start]
    }

    var file: String { worker.folder + "/" + FolderState.database }

    /// The operation.
    var command: Command {
        harness.subject.command([scenario.operation[0], file] + scenario.operation.dropFirst())
    }

    /// Creates the folder as the operation expects it.
    func lay() throws {
        try start.lay(at: worker.folder, Inodes(of: start))
    }

    /// Returns how often one thread of the operation makes the traced calls, at most.
    func countCalls(_ options: [String]) throws -> Int {
        try lay()
        _ = try worker.run(Strace.recording(options, to: worker.trace, command))
        return try Strace.mostCalls(worker.trace)
    }
}
