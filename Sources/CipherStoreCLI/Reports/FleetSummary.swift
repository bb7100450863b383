/// The result for a file, by which the summary counts it.
enum FileResult: String, Codable, Sendable {
    /// The file was processed in this run.
    case done
    /// There was nothing to do: the file had been processed before.
    case unchanged
    case failed
    /// The file is a link to a file that is processed under its own name.
    case skipped
    /// A signal ended the run before the file was started, or while the file could still be restored.
    case left
}

/// The summary of a fleet's run; the last line of the output with `--json`.
struct FleetSummary: Codable, Sendable {
    /// The highest exit status that counts failures: from 64 on, the numbers are those of sysexits(3).
    static let mostFailuresTold: Int32 = 63

    private(set) var databases = 0
    private(set) var done = 0
    private(set) var unchanged = 0
    private(set) var failed = 0
    private(set) var skipped = 0
    private(set) var left = 0
    private(set) var warnings = 0
    private(set) var plaintext = 0
    /// The number of files that were left out because a report lists them as done and they are unchanged; `nil` for
    /// none.
    private(set) var resumed: Int?
    var seconds = 0.0
    /// The signal that ended the run; `nil` if the run finished.
    var signal: Int32?

    mutating func add(_ result: FileResult, warnings count: Int, isPlaintext: Bool) {
        warnings += count
        if isPlaintext { plaintext += 1 }
        switch result {
        case .done: done += 1
        case .unchanged: unchanged += 1
        case .failed: failed += 1
        case .left: left += 1
        case .skipped:
            skipped += 1
            return
        }
        databases += 1
    }

    mutating func addResumed(_ count: Int) {
        if count > 0 { resumed = (resumed ?? 0) + count }
    }

    /// The number of failures, up to ``mostFailuresTold``.
    var status: ExitStatus { ExitStatus(code: min(Int32(clamping: failed), Self.mostFailuresTold)) }

    func print(_ verb: String) throws {
        func count(_ number: Int, _ words: String) -> String? {
            number > 0 ? "\(TerminalText.grouped(number)) \(words)" : nil
        }
        var sheet = FactSheet()
        sheet.add("databases", TerminalText.grouped(databases))
        sheet.add(verb, TerminalText.grouped(done))
        sheet.add("unchanged", count(unchanged, "already done"))
        sheet.add("resumed", count(resumed ?? 0, "skipped: listed as done in a report, and unchanged since then"))
        sheet.add("plaintext", count(plaintext, "not encrypted; see the warnings on standard error"))
        sheet.add("skipped", count(skipped, skipped == 1 ? "symbolic or hard link" : "symbolic or hard links"))
        sheet.add("failed", count(failed, "failed; see standard error for the reasons"))
        sheet.add("left", count(left, "left unchanged; run the command again"))
        sheet.add("time", "\(TerminalText.decimal(seconds, 2)) s")
        try sheet.print()
    }
}
