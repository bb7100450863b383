import Foundation

/// A run that is recorded once, cut at every point, and tried in each possible state of a disk at that point.
protocol Recorded {
    var worker: Worker { get }
    var start: FolderState { get }
    /// The operation that runs in the worker's folder.
    var command: Command { get }

    /// Judges a state.
    ///
    /// - Parameters:
    ///   - inodes: The inodes of the recorded run.
    ///   - acknowledged: The rows that the recorded run had acknowledged at that point.
    /// - Returns: Whether the file is the new one, and what is lost.
    func judge(_ state: FolderState, _ inodes: Inodes, acknowledged: [Int]) throws -> (isNew: Bool, losses: [String])
}

/// The results of the states of one recording.
struct PowerLossOutcome {
    var points = 0
    var states = 0
    var old = 0
    var new = 0
    var losses: [String] = []
}

/// One recording, and its states.
struct Experiment {
    let recorded: any Recorded

    /// A state, and the rows that were acknowledged at that point.
    private struct Candidate {
        let place: String
        let state: FolderState
        var acknowledged: [Int]
    }

    private var folder: String { recorded.worker.folder }
    private var database: String { folder + "/" + FolderState.database }

    func run(_ policy: Policy) throws -> PowerLossOutcome {
        let (initial, operations, inodes) = try record()
        var outcome = PowerLossOutcome()
        outcome.points = operations.count
        for candidate in Self.candidates(initial, operations, policy) {
            outcome.states += 1
            let (isNew, losses) = try recorded.judge(candidate.state, inodes, acknowledged: candidate.acknowledged)
            if !losses.isEmpty {
                outcome.losses.append("\(candidate.place): \(losses.joined(separator: "; "))")
            } else if isNew {
                outcome.new += 1
            } else {
                outcome.old += 1
            }
        }
        return outcome
    }

    /// Runs the operation once, and records its system calls in a file.
    private func record() throws -> (initial: [(name: String, image: FileImage)], [Operation], Inodes) {
        let initial = recorded.start.files.sorted { $0.key < $1.key }.map { (name: $0.key, image: $0.value) }
        try recorded.start.lay(at: folder, Inodes())
        var inodes = Inodes()
        inodes.note(database, initial.firstIndex { $0.name == FolderState.database })
        let calls = SystemCall.traced.map { "?" + $0 }.joined(separator: ",")
        let options = ["-xx", "-s", "16777216", "-e", "signal=none", "-e", "trace=" + calls]
        let trace = recorded.worker.trace
        _ = try recorded.worker.run(Strace.recording(options, to: trace, recorded.command))
        let recording = try Recording(
            Trace.calls(Strace.text(trace)), folder: folder, initial: initial.map { ($0.name, $0.image.bytes.count) })
        try check(recording, initial)
        inodes.note(database, recording.file(named: FolderState.database))
        return (initial, recording.operations, inodes)
    }

    /// Checks the model: if nothing is lost, it must contain what the real folder contains.
    private func check(_ recording: Recording, _ initial: [(name: String, image: FileImage)]) throws {
        var disk = Disk(initial)
        for operation in recording.operations { disk.apply(operation) }
        let descriptions = ["names kept, all unsynced kept", "names durable, all unsynced kept"]
        guard let last = disk.states(.exhaustive).first(where: { descriptions.contains($0.description) }) else {
            return
        }
        guard try last.state.files.mapValues(\.bytes) == FolderState(of: folder).files.mapValues(\.bytes) else {
            throw TraceError(detail: "the folder's files differ from the result of the recorded calls")
        }
    }

    private static func candidates(
        _ initial: [(name: String, image: FileImage)], _ operations: [Operation], _ policy: Policy
    ) -> [Candidate] {
        var disk = Disk(initial)
        var candidates: [Candidate] = []
        var known: [FolderState: Int] = [:]
        var acknowledged: [Int] = []
        for (number, operation) in operations.enumerated() {
            disk.apply(operation)
            if case .acknowledge(let row) = operation.change { acknowledged.append(row) }
            for (description, state) in disk.states(policy) {
                if let index = known[state] {
                    candidates[index].acknowledged = acknowledged
                } else {
                    known[state] = candidates.count
                    let place = "behind call \(number + 1) of \(operations.count), \(description)"
                    candidates.append(Candidate(place: place, state: state, acknowledged: acknowledged))
                }
            }
        }
        return candidates
    }
}

extension Trial: Recorded {
    func judge(_ state: FolderState, _ inodes: Inodes, acknowledged: [Int]) throws -> (isNew: Bool, losses: [String]) {
        try state.lay(at: worker.folder, inodes, isAfterRestart: true)
        // Reads the folder again, because the record in it has different inodes from the recorded one.
        let laid = try FolderState(of: worker.folder)
        let (found, losses) = try settle(laid)
        let rows = found.losses(of: acknowledged)
        return (found.form == scenario.after, untouchedLosses(laid) + wholenessLosses(found) + rows + losses)
    }
}
