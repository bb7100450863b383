import Foundation

/// What became of a run with a fault.
enum FaultOutcome {
    case succeeded
    case refused
    /// SQLCipher itself crashed, out of memory.
    case crashed
    case failed
}

extension FaultSeries {
    /// A run must end by itself, with success and the new file, or with a typed error and the old one in its journal mode;
    /// the next run must finish.
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
                losses.append("success, and the file is: \(found)")
            }
        case .exited(2):
            outcome = .refused
            losses += refusalLosses(state, found, output)
        case .killed(SIGSEGV):
            outcome = .crashed
            if !isCrashBelow(ending) { losses.append("a crash: \(output)") }
            if !trial.wholenessLosses(found).isEmpty { losses.append("a crash, and the file is: \(found)") }
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

    /// Whether the change of the file waits for the next launch, as this one said.
    private func isPutOff(_ found: Finding, _ output: String) -> Bool {
        found.form == trial.scenario.waiting && output.contains("is postponed")
    }

    /// SQLCipher 4.6.1 writes through its provider's memory without asking whether it got any.
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
        // Where it is the removal that failed, the next run does it.
        if !left.isEmpty, !call.hasPrefix("unlink") {
            losses.append("left beside: \(left.joined(separator: " ")): \(output)")
        }
        // A launch that has encrypted and migrated the file, or put its change off and migrated it, may fail to open it.
        if scenario.isLaunch, found.form == scenario.after { return losses }
        if found.form == scenario.waiting { return losses }
        // A lock that SQLite cannot give back it keeps, for as long as the process lives.
        if !fault.isLasting, call != "fcntl", output.contains("does not go on") { losses.append(output) }
        if found.form != scenario.before { losses.append("an error, and the file is: \(found): \(output)") }
        // A store turns WAL mode on whenever it opens the file, and goes on without it where it cannot.
        if scenario.isOpenEncryption { return losses }
        if state.files[record] == nil, found.state != "\(scenario.before) \(scenario.journalMode)" {
            losses.append("an error, and the journal mode is another: \(found): \(output)")
        }
        return losses
    }
}
