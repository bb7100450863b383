internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

extension Command {
    static let report = Command(
        name: "report",
        summary: "Merge the reports from --recursive runs.",
        operands: [.init("FILE", kind: .file, isRepeatable: true, "A report that was created with --report.")],
        options: [ReportCommand.html, ReportCommand.against],
        notes: [
            "report counts the processed files, the files that needed no processing, and the files that failed. Only the "
                + "latest result of each file is used. report also prints the number of bytes, the time, the kinds of failures, "
                + "the slowest files, the shards that did not finish, and the files that were assigned to two shards.",
            "The exit status is the number of databases that failed, or 63 if 63 or more failed. If no database failed "
                + "but the reports are incomplete, the exit status is 75. Reports are incomplete if a shard or a database "
                + "is missing from them, or if a shard did not finish.",
        ],
        examples: ["report shard-*.jsonl", "report shard-*.jsonl --html report.html --against tenants"],
        isToldByStatus: true,
        run: ReportCommand.run)
}

enum ReportCommand {
    static let html = Option(
        "html", value: "FILE", kind: .file, "Also write the merged report to this file as an HTML page.")
    static let against = Option(
        "against", value: "DIR", kind: .directory,
        "Compare the reports with this folder. List the databases in the folder that are missing from all reports, and "
            + "the reported databases that no longer exist.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let merged = try MergedReport(invocation.operands)
        var totals = ReportTotals(merged)
        if let folder = invocation[against] { try compare(&totals, merged, with: folder) }
        if let path = invocation[html] { try ReportPage.write(totals, to: path) }
        if invocation.has(.json) { try Output.json(totals) } else { try print(totals) }
        if totals.failed > 0 { Output.complain("\(totals.failed) of \(totals.databases) databases failed") }
        if !totals.isWhole {
            Output.complain(
                "the reports do not cover all shards and databases; process the rest, then merge all reports again")
        }
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
        func count(_ number: Int, _ words: String, one: String? = nil) -> String? {
            number > 0 ? "\(TerminalText.grouped(number)) \(number == 1 ? one ?? words : words)" : nil
        }
        func list(_ numbers: [Int], _ words: String) -> String? {
            guard !numbers.isEmpty else { return nil }
            return "\(words): " + numbers.prefix(20).map(String.init).joined(separator: ", ")
                + (numbers.count > 20 ? ", …" : "")
        }
        var sheet = FactSheet()
        sheet.add("databases", TerminalText.grouped(totals.databases))
        sheet.add(totals.goal, TerminalText.grouped(totals.done))
        sheet.add("unchanged", count(totals.unchanged, "already done"))
        sheet.add("plaintext", count(totals.plaintext, "not encrypted"))
        sheet.add("skipped", count(totals.skipped, "symbolic or hard links", one: "symbolic or hard link"))
        sheet.add("failed", count(totals.failed, "failed"))
        sheet.add(
            "bytes",
            "\(TerminalText.grouped(totals.bytesBefore)) before, \(TerminalText.grouped(totals.bytesAfter)) after")
        sheet.add(
            "time",
            "\(TerminalText.decimal(totals.seconds, 2)) s in total for all files, "
                + "\(TerminalText.decimal(totals.wallSeconds, 2)) s from the start of the first run to the end of the "
                + "last file")
        sheet.add("shards", totals.shards > 1 ? "\(totals.shards)" : nil)
        sheet.add("missing", list(totals.missingShards, "shards without a report"))
        sheet.add("unfinished", list(totals.unfinishedShards, "shards that did not finish"))
        sheet.add(
            "unreported",
            totals.missing.flatMap {
                count($0.count, "databases are not in any report", one: "database is not in any report")
            })
        sheet.add(
            "vanished",
            totals.vanished.flatMap {
                count($0.count, "reported files no longer exist", one: "reported file no longer exists")
            })
        sheet.add(
            "twice",
            count(totals.givenTwiceCount, "files were assigned to two shards", one: "file was assigned to two shards"))
        sheet.add(
            "unreadable",
            count(totals.unreadableLines, "report lines could not be read", one: "report line could not be read"))
        try sheet.print()
        try printLists(totals)
    }

    /// The maximum number of files to print from each list.
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
        try printList("Databases missing from all reports", totals.missing ?? []) { $0 }
        try printList("Reported files that no longer exist", totals.vanished ?? []) { $0 }
        try printList("Files assigned to two shards", totals.givenTwice) {
            "\($0.path): shards \($0.shards.map(String.init).joined(separator: " and "))"
        }
        try printList("Slowest files", Array(totals.slowest.prefix(5))) {
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
