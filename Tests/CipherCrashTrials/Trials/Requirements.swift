// The requirements for a run that was disturbed in any way.

/// The folder states from which the next run has finished.
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

/// The result of `CipherCrashSubject check` on a database.
struct Finding: CustomStringConvertible, Sendable {
    let description: String
    /// The form, such as `encrypted-migrated`; if the database is not intact, the whole text.
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

    /// Returns a message about acknowledged rows that are missing.
    func losses(of acknowledged: some Sequence<Int>) -> [String] {
        let missing = Set(acknowledged).subtracting(rows)
        return missing.isEmpty ? [] : ["acknowledged rows are missing: \(missing.sorted())"]
    }
}

/// The output of an operation: the rows that it acknowledged, one per line, and all other lines.
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
    /// Reads the files as the next launch does, and runs the operation again.
    ///
    /// If an equal state was already tried under the same requirements, that result is used.
    ///
    /// - Parameter state: The files that are in the folder.
    /// - Returns: The state before the next run, and what is wrong with the next run.
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

    /// The file must be intact, and be either the whole old file or the whole new one.
    func wholenessLosses(_ found: Finding) -> [String] {
        [scenario.before, scenario.after].contains(found.form) ? [] : ["not whole: \(found)"]
    }

    /// Some operations never write certain files.
    ///
    /// A shadow proof and a backup never write the database or its log. A recovery never writes them or the journal. A
    /// restore never writes the backup.
    func untouchedLosses(_ state: FolderState) -> [String] {
        let untouched =
            scenario.isShadow || scenario.isBackup
            ? [FolderState.database, FolderState.database + "-wal"]
            : scenario.isRecovery
                ? ["", "-wal", "-journal"].map { FolderState.database + $0 }
                : scenario.restoresCopy ? [Scenario.copy] : []
        return untouched.filter { state.files[$0]?.bytes != start.files[$0]?.bytes }.map { "\($0) was changed" }
    }

    /// Returns the files in the folder except the database, its log, a backup and the allowed ones.
    func strangers(_ state: FolderState, allowing allowed: [String]) -> [String] {
        let copies = scenario.makesCopy || scenario.restoresCopy ? [Scenario.copy] : []
        let own = ["", "-wal", "-shm"] + (scenario.isRecovery ? ["-journal"] : [])
        let known = own.map { FolderState.database + $0 } + copies + allowed
        return state.files.keys.filter { !known.contains($0) }.sorted()
    }

    /// The next run must have finished, with the new file in its file mode and journal mode.
    ///
    /// Only its backup may be beside it.
    private func endingLosses(_ ending: String, _ last: Finding) throws -> [String] {
        guard Scenario.endings.contains(ending) else { return ["the next run says: \(ending)"] }
        let state = try FolderState(of: worker.folder)
        let left = strangers(state, allowing: (scenario.keepsBackup ? [Scenario.backup] : []) + scenario.kept)
        guard left.isEmpty else { return ["files left after the next run: \(left.joined(separator: " "))"] }
        guard last.state == "\(scenario.after) \(scenario.journalMode)" else { return ["the final state is \(last)"] }
        let mode = state.files[FolderState.database]?.mode
        guard mode == StartingFiles.mode else { return ["at the end the file's mode is \(mode ?? 0)"] }
        guard !scenario.makesCopy || state.files[Scenario.copy] != nil else { return ["there is no backup at the end"] }
        return try untouchedLosses(state) + backupLosses(state) + copyLosses(state) + damagedLosses(state)
    }

    /// A backup or a recovered database must be intact when it has its name.
    private func copyLosses(_ state: FolderState) throws -> [String] {
        guard scenario.makesCopy, let copy = state.files[Scenario.copy] else { return [] }
        let found = try look(at: copy)
        return Finding(found).form == scenario.copyForm ? [] : ["the copy is not intact: \(found)"]
    }

    /// The damaged file must be beside the recovered one, intact, with its log or journal.
    private func damagedLosses(_ state: FolderState) throws -> [String] {
        guard scenario.keepsDamaged else { return [] }
        guard let damaged = state.files[Scenario.damaged] else { return ["the damaged file was not kept"] }
        var sidecars: [String: FileImage] = [:]
        for ending in ["-wal", "-journal"] { sidecars[ending] = state.files[Scenario.damaged + ending] }
        let found = try look(at: damaged, with: sidecars)
        return Finding(found).form == scenario.before ? [] : ["the kept damaged file has changed: \(found)"]
    }

    /// Returns the result of `CipherCrashSubject check` on a file with the files beside it.
    private func look(at file: FileImage, with sidecars: [String: FileImage] = [:]) throws -> String {
        var look = FolderState(files: [FolderState.database: file], numbers: [FolderState.database: 0])
        for (number, (ending, sidecar)) in sidecars.enumerated() {
            look.files[FolderState.database + ending] = sidecar
            look.numbers[FolderState.database + ending] = number + 1
        }
        try look.lay(at: worker.look, Inodes())
        return try worker.run(harness.subject.command(["check", worker.look + "/" + FolderState.database])).output
    }

    /// A requested backup must be beside the new file, and contain all of the old file.
    private func backupLosses(_ state: FolderState) throws -> [String] {
        guard scenario.keepsBackup else { return [] }
        guard let backup = state.files[Scenario.backup] else { return ["there is no backup"] }
        let found = try look(at: backup)
        return Finding(found).form == "plaintext" ? [] : ["the backup is not intact: \(found)"]
    }
}
