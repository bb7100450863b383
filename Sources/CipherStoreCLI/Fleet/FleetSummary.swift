/// How it went with a fleet; the last line of `--json`.
struct FleetSummary: Encodable {
    /// The highest exit status that counts failures: from 64 on the numbers are those of sysexits(3).
    static let mostFailuresTold: Int32 = 63

    private(set) var databases = 0
    private(set) var done = 0
    private(set) var unchanged = 0
    private(set) var failed = 0
    private(set) var skipped = 0
    private(set) var left = 0
    private(set) var warnings = 0
    private(set) var plaintext = 0
    var seconds = 0.0

    mutating func add(_ result: FleetResult) {
        warnings += result.warnings.count
        if result.isPlaintext { plaintext += 1 }
        switch result.kind {
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

    /// The number of failures, as far as the numbers go.
    var status: ExitStatus { ExitStatus(code: min(Int32(clamping: failed), Self.mostFailuresTold)) }

    func print(_ verb: String) throws {
        func count(_ number: Int, _ words: String) -> String? {
            number > 0 ? "\(TerminalText.grouped(number)) \(words)" : nil
        }
        var sheet = FactSheet()
        sheet.add("databases", TerminalText.grouped(databases))
        sheet.add(verb, TerminalText.grouped(done))
        sheet.add("before", count(unchanged, "had that done before"))
        sheet.add("plaintext", count(plaintext, "not encrypted, as told on standard error"))
        sheet.add("skipped", count(skipped, "symbolic or hard links"))
        sheet.add("failed", count(failed, "failed, as told on standard error"))
        sheet.add("left", count(left, "not begun, or given back as they were: run the command again"))
        sheet.add("time", "\(TerminalText.decimal(seconds, 2)) s")
        try sheet.print()
    }
}
