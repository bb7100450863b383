internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

extension Command {
    static let report = Command(
        name: "report",
        summary: "Merge the reports of a fleet's runs.",
        operands: [.init("FILE", kind: .file, isRepeatable: true, "A report written by --report.")],
        options: [ReportCommand.html, ReportCommand.against],
        notes: [
            "Prints how many files were done, had been done before, or failed, by the latest result of each file; also "
                + "bytes, time, the kinds of failures, the slowest files, the shards that did not finish, and the "
                + "files that were assigned to two shards.",
            "The exit status is the number of databases that failed, or 63 for that many or more; if none failed but a "
                + "shard or a file is missing, it is 75.",
        ],
        examples: ["report shard-*.jsonl", "report shard-*.jsonl --html report.html --against tenants"],
        isToldByStatus: true,
        run: ReportCommand.run)
}

enum ReportCommand {
    static let html = Option("html", value: "FILE", kind: .file, "Also write an HTML page to this file.")
    static let against = Option(
        "against", value: "DIR", kind: .directory,
        "Look in the folder for databases that no report lists, and for reported ones that no longer exist.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let merged = try MergedReport(invocation.operands)
        var totals = ReportTotals(merged)
        if let folder = invocation[against] { try compare(&totals, merged, with: folder) }
        if let path = invocation[html] { try ReportPage.write(totals, to: path) }
        if invocation.has(.json) { try Output.json(totals) } else { try print(totals) }
        if totals.failed > 0 { Output.complain("\(totals.failed) of \(totals.databases) databases failed") }
        if !totals.isWhole { Output.complain("the work is incomplete: run the missing parts again") }
        return totals.status
    }

    private static func compare(_ totals: inout ReportTotals, _ merged: MergedReport, with folder: String) throws {
        let root = try FleetFiles.root(of: folder)
        let files = try FleetFiles.search(in: folder, .usual, .whole, ResumedFiles())
        var gone = merged.files.filter { $0.value.result != .skipped }
        var missing: [String] = []
        while let found = files.next() {
            guard case .database = found.kind else { continue }
            let path = files.relative(found.path)
            gone[PathDigest(path)] = nil
            if merged.files[PathDigest(path)] == nil { missing.append(path) }
        }
        totals.missing = missing
        // A file that the search does not recognize as a database may still exist.
        totals.vanished = try gone.values.map(\.name)
            .filter { try !FileSystem.exists(FileName.inFolder(root, $0)) }.sorted()
    }

    private static func print(_ totals: ReportTotals) throws {
        func count(_ number: Int, _ words: String) -> String? {
            number > 0 ? "\(TerminalText.grouped(number)) \(words)" : nil
        }
        func list(_ numbers: [Int], _ words: String) -> String? {
            guard !numbers.isEmpty else { return nil }
            return numbers.prefix(20).map(String.init).joined(separator: ", ") + (numbers.count > 20 ? ", …" : "")
                + " \(words)"
        }
        var sheet = FactSheet()
        sheet.add("databases", TerminalText.grouped(totals.databases))
        sheet.add(totals.goal, TerminalText.grouped(totals.done))
        sheet.add("before", count(totals.unchanged, "had been done before"))
        sheet.add("plaintext", count(totals.plaintext, "not encrypted"))
        sheet.add("skipped", count(totals.skipped, "symbolic or hard links"))
        sheet.add("failed", count(totals.failed, "failed"))
        sheet.add(
            "bytes",
            "\(TerminalText.grouped(totals.bytesBefore)) before, \(TerminalText.grouped(totals.bytesAfter)) after")
        sheet.add(
            "time",
            "\(TerminalText.decimal(totals.seconds, 2)) s for all files, "
                + "\(TerminalText.decimal(totals.wallSeconds, 2)) s from the first to the last")
        sheet.add("shards", totals.shards > 1 ? "\(totals.shards)" : nil)
        sheet.add("missing", list(totals.missingShards, "have no report"))
        sheet.add("unended", list(totals.unendedShards, "did not finish"))
        sheet.add("not named", totals.missing.flatMap { count($0.count, "databases that no report lists") })
        sheet.add("vanished", totals.vanished.flatMap { count($0.count, "reported, but no longer there") })
        sheet.add("twice", count(totals.givenTwiceCount, "assigned to two shards"))
        sheet.add("cut", count(totals.unreadableLines, "lines of the reports could not be read"))
        try sheet.print()
        try printLists(totals)
    }

    /// The maximum number of files to print of each list.
    private static let mostListed = 20

    private static func printLists(_ totals: ReportTotals) throws {
        if totals.failed > 0 {
            try Output.line()
            try Output.line("Failed:")
        }
        for (code, count) in totals.failuresByCode.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            try Output.line("  \(TerminalText.grouped(count)) \(code)")
        }
        try printList("Files that failed", totals.failures) { "\($0.path): \($0.message) (shard \($0.shard))" }
        try printList("Databases that no report lists", totals.missing ?? []) { $0 }
        try printList("Reported, but no longer there", totals.vanished ?? []) { $0 }
        try printList("Assigned to two shards", totals.givenTwice) {
            "\($0.path): shards \($0.shards.map(String.init).joined(separator: " and "))"
        }
        try printList("The slowest", Array(totals.slowest.prefix(5))) {
            "\($0.path): \(TerminalText.decimal($0.seconds, 3)) s, \(TerminalText.grouped($0.bytesBefore)) bytes"
        }
    }

    private static func printList<Element>(
        _ title: String, _ list: [Element], _ text: (Element) -> String
    ) throws {
        guard !list.isEmpty else { return }
        try Output.line()
        try Output.line("\(title):")
        for element in list.prefix(mostListed) { try Output.line("  \(text(element))") }
        if list.count > mostListed {
            try Output.line("  and \(TerminalText.grouped(list.count - mostListed)) more: see --json or --html")
        }
    }
}
