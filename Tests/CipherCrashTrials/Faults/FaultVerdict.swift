import Foundation

/// The result of a run with a fault.
enum FaultOutcome {
    case succeeded
    case refused
    /// SQLCipher itself crashed for lack of memory.
    case crashed
    case failed
}

extension FaultSeries {
    /// A run must end by itself, with success and the new file, or with a typed error and the old file in its journal
    /// mode.
    ///
    /// The next run must finish.
    func judge(_ ending: Ending) throws -> (outcome: FaultOutcome, losses: [String]) {
        let state = try FolderState(of: trial.worker.folder)
        let (found, nextRun) = try trial.settle(state)
        let saying = Saying(ending.output)
        let output = saying.lines.joined(separator: " ")
        let outcome: FaultOutcome
        var losses = trial.untouchedLosses(state) + found.losses(of: saying.acknowledged)
        switch ending.cause {
        case .exited(0):
            outcome = .succeeded
            if !isPutOff(found, output), found.form != trial.scenario.after {
                losses.append("the run succeeded, but the file is: \(found)")
            }
        case .exited(2):
            outcome = .refused
            losses += refusalLosses(state, found, output)
        case .killed(SIGSEGV):
            outcome = .crashed
            if !isCrashBelow(ending) { losses.append("a crash: \(output)") }
            if !trial.wholenessLosses(found).isEmpty { losses.append("the run crashed, and the file is: \(found)") }
        case .timedOut:
            outcome = .failed
            losses.append("it hangs")
        case .exited(let status):
            outcome = .failed
            losses.append("status \(status): \(output)")
        case .killed(let signal):
            outcome = .failed
            losses.append("signal \(signal): \(output)")
        }
        return (outcome, losses + nextRun)
    }

    /// Returns whether this launch said that the change of the file waits for the next launch.
    private func isPutOff(_ found: Finding, _ output: String) -> Bool {
        found.form == trial.scenario.waiting && output.contains("is postponed")
    }

    /// SQLCipher 4.6.1 writes to its provider's memory without checking whether the allocation succeeded.
    private func isCrashBelow(_ ending: Ending) -> Bool {
        fault.isMemory
            && ending.output.split(separator: "\n").contains { line in
                let words = line.split(separator: " ")
                return words.first == "0" && words.dropFirst().first?.hasPrefix("0x") == true
                    && line.contains(" in libsqlcipher")
            }
    }

    private func refusalLosses(_ state: FolderState, _ found: Finding, _ output: String) -> [String] {
        let scenario = trial.scenario
        let record = UpgradeRecord.name
        // A launch may have recovered the file, and then fail to open it.
        let kept = scenario.isLaunch && found.form == scenario.after ? scenario.kept : []
        let left = trial.strangers(state, allowing: [FolderState.database + "-journal", record] + kept)
        var losses: [String] = []
        // If the removal itself failed, the next run removes the file.
        if !left.isEmpty, !call.hasPrefix("unlink") {
            losses.append("files left beside the database: \(left.joined(separator: " ")): \(output)")
        }
        // A launch may fail to open a file that it has encrypted and migrated, or one whose change it has postponed and
        // that it has migrated.
        if scenario.isLaunch, found.form == scenario.after { return losses }
        if found.form == scenario.waiting { return losses }
        // SQLite keeps a lock that it cannot release, until the process ends.
        if !fault.isLasting, call != "fcntl", output.contains("does not go on") { losses.append(output) }
        if found.form != scenario.before { losses.append("the run failed, and the file is: \(found): \(output)") }
        // A store turns on WAL mode whenever it opens the file, and continues without it if that fails.
        if scenario.isOpenEncryption { return losses }
        if state.files[record] == nil, found.state != "\(scenario.before) \(scenario.journalMode)" {
            losses.append("the run failed, and the journal mode has changed: \(found): \(output)")
        }
        return losses
    }
}
