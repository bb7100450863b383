internal import CipherHistory
internal import CipherStore

/// The options and output that are common to the commands that write to the history.
enum HistoryChangeText {
    static let options: [Option] = [.lockTimeout, .busyTimeout]

    static func opening(_ invocation: Invocation) throws -> StoreOpening {
        try ConfigurationOptions.opening(
            invocation, provider: try ConfigurationOptions.provider(invocation),
            options: try UpgradeOptions.waiting(invocation))
    }

    static func print(_ change: HistoryChange, _ invocation: Invocation) throws -> ExitStatus {
        guard !invocation.has(.json) else {
            try Output.json(change)
            return .done
        }
        var sheet = FactSheet()
        sheet.add(change.event?.rawValue ?? "history", change.path)
        sheet.add("version", change.version.description)
        if change.details.isEmpty { sheet.add("repaired", "nothing; the schema matches the recorded schema") }
        try sheet.print()
        for detail in change.details { try Output.line("- \(detail)") }
        return .done
    }
}
