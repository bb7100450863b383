import Foundation
import TestSupport

/// One scenario: recorded once, cut at every point, each state tried.
struct Experiment {
    let subject: String
    let scenario: Scenario
    private static let database = "app.db"
    private static let mode = 0o640
    private static let earlierRows = 3

    /// A state, and how many rows were acknowledged by then.
    private struct Candidate {
        let place: String
        let state: DiskState
        var acknowledged: Int
    }

    func run(_ policy: Policy) throws -> Outcome {
        let folder = try TemporaryFolder()
        let initial = try prepare(folder)
        let (operations, inodes) = try record(folder, initial)
        let candidates = Self.candidates(initial, operations, policy)
        var outcome = Outcome()
        outcome.points = operations.count
        for candidate in candidates {
            outcome.states += 1
            do {
                let isNew = try scenario.isStore ? tryStore(candidate) : tryFile(candidate, inodes)
                if isNew { outcome.new += 1 } else { outcome.old += 1 }
            } catch let loss as Loss {
                outcome.losses.append("\(candidate.place): \(loss.detail)")
            }
        }
        return outcome
    }

    // MARK: Recording

    private func prepare(_ folder: TemporaryFolder) throws -> [(name: String, image: FileImage)] {
        if scenario.isStore {
            _ = try Subject(path: subject).run([scenario.operation[0], folder.directory, String(Self.earlierRows)])
        } else {
            _ = try Subject(path: subject).run(["make", folder.path(Self.database)] + scenario.make)
            try FileManager.default.setAttributes(
                [.posixPermissions: Self.mode], ofItemAtPath: folder.path(Self.database))
        }
        // No power loss leaves the index of a log, and whoever opens the database makes it anew.
        for name in try folder.names where name.hasSuffix("-shm") {
            try FileManager.default.removeItem(atPath: folder.path(name))
        }
        return try folder.names.map { name in
            let data = try Data(contentsOf: folder.url.appending(path: name))
            return (name, FileImage(bytes: Array(data), mode: Self.mode))
        }
    }

    private func record(
        _ folder: TemporaryFolder, _ initial: [(name: String, image: FileImage)]
    ) throws -> ([Operation], Inodes) {
        let traces = try TemporaryFolder()
        var inodes = Inodes()
        inodes.note(folder.path(Self.database), initial.firstIndex { $0.name == Self.database })
        let target = scenario.isStore ? folder.directory : folder.path(Self.database)
        let arguments = [scenario.operation[0], target] + scenario.operation.dropFirst()
        try Subject(path: subject).runTraced(arguments, to: traces.path("trace"))
        let trace = try String(contentsOfFile: traces.path("trace"), encoding: .utf8)
        let recording = try Recording(
            Trace.calls(trace), folder: folder.directory, initial: initial.map { ($0.name, $0.image.bytes.count) })
        try check(recording, folder, initial)
        inodes.note(folder.path(Self.database), recording.file(named: Self.database))
        return (recording.operations, inodes)
    }

    /// Shows that the model is right: with nothing lost it holds what the real folder holds.
    private func check(
        _ recording: Recording, _ folder: TemporaryFolder, _ initial: [(name: String, image: FileImage)]
    ) throws {
        var disk = Disk(initial)
        for operation in recording.operations { disk.apply(operation) }
        let descriptions = ["names kept, all unsynced kept", "names durable, all unsynced kept"]
        guard let last = disk.states(.exhaustive).first(where: { descriptions.contains($0.description) }) else {
            return
        }
        var real: [String: [UInt8]] = [:]
        for name in try folder.names { real[name] = Array(try Data(contentsOf: folder.url.appending(path: name))) }
        guard last.state.files.mapValues(\.bytes) == real else {
            throw TraceError(detail: "the folder holds other files than the recorded calls made")
        }
    }

    private static func candidates(
        _ initial: [(name: String, image: FileImage)], _ operations: [Operation], _ policy: Policy
    ) -> [Candidate] {
        var disk = Disk(initial)
        var candidates: [Candidate] = []
        var known: [DiskState: Int] = [:]
        var acknowledged = earlierRows
        for (number, operation) in operations.enumerated() {
            disk.apply(operation)
            if case .acknowledge(let row) = operation.change { acknowledged = row }
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

    // MARK: Trying

    private struct Loss: Error { let detail: String }

    private func laying<Result>(
        _ state: DiskState, _ inodes: Inodes = Inodes(), _ body: (TemporaryFolder) throws -> Result
    ) throws -> Result {
        let folder = try TemporaryFolder()
        // Else it could be removed behind the last use of its path.
        defer { withExtendedLifetime(folder) {} }
        for (name, image) in state.files {
            try Data(image.bytes).write(to: folder.url.appending(path: name))
        }
        try inodes.correct(folder.path(Self.database + "-attempt"), state, in: folder)
        for (name, image) in state.files {
            try FileManager.default.setAttributes([.posixPermissions: image.mode], ofItemAtPath: folder.path(name))
        }
        return try body(folder)
    }

    /// Returns whether the store came back; its rows may be more than those acknowledged by one at most.
    private func tryStore(_ candidate: Candidate) throws -> Bool {
        let found = try laying(candidate.state) { try Subject(path: subject).run(["count", $0.directory]) }
        guard let rows = Int(found), (candidate.acknowledged...candidate.acknowledged + 1).contains(rows) else {
            throw Loss(detail: "\(candidate.acknowledged) rows acknowledged, found: \(found)")
        }
        return rows > candidate.acknowledged
    }

    /// Returns whether the file was found in its new form.
    private func tryFile(_ candidate: Candidate, _ inodes: Inodes) throws -> Bool {
        let isNew = try laying(candidate.state, inodes) { folder in
            let arguments = ["settle", folder.path(Self.database)] + scenario.operation
            let said = try Subject(path: subject).run(arguments).split(separator: "\n").map(String.init)
            guard said.count == 3 else { throw Loss(detail: "not tried: \(said.joined(separator: "; "))") }
            let (found, ending, last) = (said[0], said[1], said[2])
            let form = found.split(separator: " ").first.map(String.init)
            guard form == scenario.old || form == scenario.new else { throw Loss(detail: "not whole: \(found)") }
            guard Scenario.endings.contains(ending) else { throw Loss(detail: "the next run says: \(ending)") }
            guard last == "\(scenario.new) \(scenario.journalMode)" else { throw Loss(detail: "at the end: \(last)") }
            try checkFolder(folder)
            return form == scenario.new
        }
        if isNew { try laying(candidate.state) { try checkBackup($0) } }
        return isNew
    }

    /// What lies beside the new file, and its mode.
    private func checkFolder(_ folder: TemporaryFolder) throws {
        let allowed =
            [Self.database, Self.database + "-wal", Self.database + "-shm"]
            + (scenario.keepsBackup ? [Self.database + "-plaintext"] : [])
        let left = try folder.names.filter { !allowed.contains($0) }
        guard left.isEmpty else { throw Loss(detail: "left beside: \(left.joined(separator: " "))") }
        try checkBackup(folder)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path(Self.database))
        guard attributes[.posixPermissions] as? Int == Self.mode else { throw Loss(detail: "the mode is another") }
    }

    private func checkBackup(_ folder: TemporaryFolder) throws {
        guard scenario.keepsBackup else { return }
        let look = try TemporaryFolder()
        let backup = folder.path(Self.database + "-plaintext")
        guard FileManager.default.fileExists(atPath: backup) else { throw Loss(detail: "there is no backup") }
        try FileManager.default.copyItem(atPath: backup, toPath: look.path(Self.database))
        let found = try Subject(path: subject).run(["check", look.path(Self.database)])
        guard found.hasPrefix("plaintext ") else { throw Loss(detail: "the backup is not whole: \(found)") }
    }
}

extension TemporaryFolder {
    /// Its path without symbolic links and without a slash at its end.
    fileprivate var directory: String { path("").hasSuffix("/") ? String(path("").dropLast()) : path("") }
}
