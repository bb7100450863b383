// What a run that something was done to must satisfy, whatever that was.

/// The states of folders from which the next run finished.
final class Settled: Sendable {
    struct Key: Hashable {
        let operation: [String]
        let after: String
        let journalMode: String
        let keepsBackup: Bool
        let digest: Int

        init(_ scenario: Scenario, _ state: FolderState) {
            operation = scenario.operation
            after = scenario.after
            journalMode = scenario.journalMode
            keepsBackup = scenario.keepsBackup
            digest = state.digest
        }
    }

    private let found = Locked<[Key: Finding]>([:])

    subscript(key: Key) -> Finding? {
        get { found.with { $0[key] } }
        set { found.with { $0[key] = newValue } }
    }
}

/// What `CipherCrashSubject check` says of a database.
struct Finding: CustomStringConvertible, Sendable {
    let description: String
    /// Such as `encrypted-migrated`; what else it says where the database is not whole.
    let form: String
    /// The form and the journal mode.
    let state: String
    /// The numbers of the rows that were written.
    let rows: Set<Int>

    init(_ text: String) {
        description = text
        let words = text.split(separator: " ")
        let numbers = words.last.flatMap { $0.hasPrefix("rows=") ? $0.dropFirst(5) : nil }
        let isWhole = words.count == (numbers == nil ? 2 : 3)
        form = isWhole ? String(words[0]) : text
        state = isWhole ? words.prefix(2).joined(separator: " ") : text
        rows = Set((numbers ?? "").split(separator: ",").compactMap { Int($0) })
    }

    /// Those of the rows that were acknowledged and are not there.
    func losses(of acknowledged: some Sequence<Int>) -> [String] {
        let missing = Set(acknowledged).subtracting(rows)
        return missing.isEmpty ? [] : ["acknowledged rows are missing: \(missing.sorted())"]
    }
}

/// What a run of an operation said: the rows that it acknowledged, a line each, and all else.
struct Saying {
    var acknowledged: [Int] = []
    var lines: [String] = []

    init(_ output: String) {
        for line in output.split(separator: "\n", omittingEmptySubsequences: false) {
            if let row = Int(line) { acknowledged.append(row) } else { lines.append(String(line)) }
        }
    }
}

extension Trial {
    /// What lies there now is read as the next launch reads it, and the operation is run again: from an equal state, and
    /// under the same demands, that was tried before.
    ///
    /// - Parameter state: The files that are in the folder.
    /// - Returns: What was found before the next run, and what is wrong with the next run.
    func settle(_ state: FolderState) throws -> (found: Finding, losses: [String]) {
        let key = Settled.Key(scenario, state)
        if let found = harness.settled[key] { return (found, []) }
        let saying = Saying(try worker.run(harness.subject.command(["settle", file] + scenario.operation)).output)
        let said = saying.lines
        let found = Finding(said.first ?? "")
        var losses = found.form == scenario.after ? try backupLosses(state) + damagedLosses(state) : []
        losses += try copyLosses(state)
        let last = Finding(said.dropFirst(2).joined(separator: " "))
        losses += try endingLosses(said.count > 1 ? said[1] : "", last)
        if losses.isEmpty { losses = last.losses(of: found.rows.union(saying.acknowledged)) }
        if losses.isEmpty { harness.settled[key] = found }
        return (found, losses)
    }

    /// The file must be whole: all of the old one, or all of the new one.
    func wholenessLosses(_ found: Finding) -> [String] {
        [scenario.before, scenario.after].contains(found.form) ? [] : ["not whole: \(found)"]
    }

    /// A shadow proof and a backup never write the database or its log, nor does a recovery, its journal included; a restore never
    /// writes the backup.
    func untouchedLosses(_ state: FolderState) -> [String] {
        let untouched =
            scenario.isShadow || scenario.isBackup
            ? [FolderState.database, FolderState.database + "-wal"]
            : scenario.isRecovery
                ? ["", "-wal", "-journal"].map { FolderState.database + $0 }
                : scenario.restoresCopy ? [Scenario.copy] : []
        return untouched.filter { state.files[$0]?.bytes != start.files[$0]?.bytes }.map { "\($0) was changed" }
    }

    /// What lies there beside the database, its log, a backup, and what may be there.
    func strangers(_ state: FolderState, allowing allowed: [String]) -> [String] {
        let copies = scenario.makesCopy || scenario.restoresCopy ? [Scenario.copy] : []
        let own = ["", "-wal", "-shm"] + (scenario.isRecovery ? ["-journal"] : [])
        let known = own.map { FolderState.database + $0 } + copies + allowed
        return state.files.keys.filter { !known.contains($0) }.sorted()
    }

    /// The next run must have finished, with the new file in its modes, its backup and nothing else beside it.
    private func endingLosses(_ ending: String, _ last: Finding) throws -> [String] {
        guard Scenario.endings.contains(ending) else { return ["the next run says: \(ending)"] }
        let state = try FolderState(of: worker.folder)
        let left = strangers(state, allowing: (scenario.keepsBackup ? [Scenario.backup] : []) + scenario.kept)
        guard left.isEmpty else { return ["left beside after the next run: \(left.joined(separator: " "))"] }
        guard last.state == "\(scenario.after) \(scenario.journalMode)" else { return ["at the end: \(last)"] }
        let mode = state.files[FolderState.database]?.mode
        guard mode == StartingFiles.mode else { return ["at the end the file's mode is \(mode ?? 0)"] }
        guard !scenario.makesCopy || state.files[Scenario.copy] != nil else { return ["there is no backup at the end"] }
        return try untouchedLosses(state) + backupLosses(state) + copyLosses(state) + damagedLosses(state)
    }

    /// A backup or a recovered database that has its name must be whole.
    private func copyLosses(_ state: FolderState) throws -> [String] {
        guard scenario.makesCopy, let copy = state.files[Scenario.copy] else { return [] }
        let found = try look(at: copy)
        return Finding(found).form == scenario.copyForm ? [] : ["the copy is not whole: \(found)"]
    }

    /// The damaged file must be there beside the recovered one, and be all of what it was, with its log or journal.
    private func damagedLosses(_ state: FolderState) throws -> [String] {
        guard scenario.keepsDamaged else { return [] }
        guard let damaged = state.files[Scenario.damaged] else { return ["the damaged file is not kept"] }
        var sidecars: [String: FileImage] = [:]
        for ending in ["-wal", "-journal"] { sidecars[ending] = state.files[Scenario.damaged + ending] }
        let found = try look(at: damaged, with: sidecars)
        return Finding(found).form == scenario.before ? [] : ["the damaged file is not whole: \(found)"]
    }

    /// What `CipherCrashSubject check` says of a file with what lies beside it.
    private func look(at file: FileImage, with sidecars: [String: FileImage] = [:]) throws -> String {
        var look = FolderState(files: [FolderState.database: file], numbers: [FolderState.database: 0])
        for (number, (ending, sidecar)) in sidecars.enumerated() {
            look.files[FolderState.database + ending] = sidecar
            look.numbers[FolderState.database + ending] = number + 1
        }
        try look.lay(at: worker.look, Inodes())
        return try worker.run(harness.subject.command(["check", worker.look + "/" + FolderState.database])).output
    }

    /// A backup that was asked for must be there beside the new file, and be all of the old one.
    private func backupLosses(_ state: FolderState) throws -> [String] {
        guard scenario.keepsBackup else { return [] }
        guard let backup = state.files[Scenario.backup] else { return ["there is no backup"] }
        let found = try look(at: backup)
        return Finding(found).form == "plaintext" ? [] : ["the backup is not whole: \(found)"]
    }
}
