internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// Merged reports as one HTML page, which loads nothing else.
///
/// The page contains numbers and the first failures, so it stays small however many files there were.
enum ReportPage {
    /// The maximum numbers of failures and shards on the page; the rest is in the JSON.
    private static let mostRows = 20_000
    private static let mostShards = 2_000

    /// Writes the page, and replaces an existing one.
    ///
    /// - Throws: ``StoreError`` if the page cannot be written.
    static func write(_ totals: ReportTotals, to path: String) throws {
        let page = try text(totals)
        let descriptor = path.withSystemPath { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666) }
        guard descriptor >= 0 else { throw FileSystem.failure("be written", path) }
        defer { close(descriptor) }
        let reason = FileDescriptorStream.writeAll(Array(page.utf8), to: descriptor)
        guard reason == 0 else { throw FileSystem.failure("be written", path, reason) }
    }

    static func text(_ totals: ReportTotals) throws -> String {
        var body = "<h1>Fleet report: \(escaped(totals.goal))</h1>\n<p class=folder>\(escaped(totals.folder))</p>\n"
        body += cards(totals) + remarks(totals)
        body += "<h2>Durations</h2>\n" + histogram(totals.durations)
        body += "<h2>Shards</h2>\n" + shards(totals)
        body += "<h2>Slowest files</h2>\n" + slowest(totals)
        body += "<h2>Failures</h2>\n" + failures(totals)
        let rows = try Output.jsonText(shownFailures(totals))
        // A string must not contain text that closes the script or opens a comment in it.
        let data = rows.replacing("<", with: "\\u003c")
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Fleet report: \(escaped(totals.goal))</title>
            <style>
            \(style)
            </style>
            </head>
            <body>
            \(body)
            <script type="application/json" id="data">\(data)</script>
            <script>
            \(script)
            </script>
            </body>
            </html>

            """
    }

    private static func cards(_ totals: ReportTotals) -> String {
        let facts: [(String, String, Bool)] = [
            ("databases", number(totals.databases), false),
            ("done", number(totals.done), false),
            ("already done", number(totals.unchanged), false),
            ("failed", number(totals.failed), totals.failed > 0),
            ("plaintext", number(totals.plaintext), totals.plaintext > 0),
            ("links skipped", number(totals.skipped), false),
            ("bytes before", number(totals.bytesBefore), false),
            ("bytes after", number(totals.bytesAfter), false),
            ("seconds for all files", TerminalText.decimal(totals.seconds, 1), false),
            ("seconds elapsed", TerminalText.decimal(totals.wallSeconds, 1), false),
        ]
        let cards = facts.map { "<div class=\"card\($2 ? " bad" : "")\"><b>\($1)</b>\($0)</div>" }
        return "<div class=cards>\(cards.joined())</div>\n"
    }

    /// Returns the problems that an operator must act on.
    private static func remarks(_ totals: ReportTotals) -> String {
        func list(_ numbers: [Int]) -> String {
            numbers.prefix(50).map(String.init).joined(separator: ", ") + (numbers.count > 50 ? ", …" : "")
        }
        func names(_ names: [String]) -> String {
            names.prefix(50).map { "<li>\(escaped($0))</li>" }.joined()
                + (names.count > 50 ? "<li>and \(number(names.count - 50)) more</li>" : "")
        }
        var text = ""
        if !totals.missingShards.isEmpty {
            text +=
                "<li>Shards without a report (\(number(totals.missingShards.count))): \(list(totals.missingShards))</li>"
        }
        if !totals.unfinishedShards.isEmpty {
            text +=
                "<li>Shards that did not finish (\(number(totals.unfinishedShards.count))): "
                + "\(list(totals.unfinishedShards))</li>"
        }
        if let missing = totals.missing, !missing.isEmpty {
            text += "<li>Databases missing from all reports (\(number(missing.count)))<ul>\(names(missing))</ul></li>"
        }
        if let vanished = totals.vanished, !vanished.isEmpty {
            text +=
                "<li>Reported files that no longer exist "
                + "(\(number(vanished.count)))<ul>\(names(vanished))</ul></li>"
        }
        if totals.givenTwiceCount > 0 {
            let lines = totals.givenTwice.map { "\($0.path): shards \($0.shards[0]) and \($0.shards[1])" }
            text += "<li>Files assigned to two shards (\(number(totals.givenTwiceCount)))<ul>\(names(lines))</ul></li>"
        }
        if totals.unreadableLines > 0 {
            text += "<li>Report lines that could not be read: \(number(totals.unreadableLines))</li>"
        }
        return text.isEmpty ? "" : "<ul class=remarks>\(text)</ul>\n"
    }

    private static func histogram(_ counts: [Int]) -> String {
        let (width, height, most) = (40, 160, max(1, counts.max() ?? 1))
        var bars = ""
        let limits = ReportTotals.Histogram.limits
        for (index, count) in counts.enumerated() {
            let bar = count == 0 ? 0 : max(1, height * count / most)
            let x = index * width
            let label = index < limits.count ? seconds(limits[index]) : "more"
            bars +=
                "<g><title>\(number(count)) files, "
                + "\(index < limits.count ? "up to \(label)" : "longer than 100 s")</title>"
                + "<rect class=hit x=\(x) y=0 width=\(width) height=\(height + 20) />"
                + "<rect class=bar x=\(x + 3) y=\(20 + height - bar) width=\(width - 6) height=\(bar) />"
                + "<text x=\(x + width / 2) y=\(height + 36)>\(label)</text>"
                + (count > 0
                    ? "<text class=count x=\(x + width / 2) y=\(16 + height - bar)>\(short(count))</text>" : "")
                + "</g>"
        }
        return "<svg viewBox=\"0 0 \(counts.count * width) \(height + 44)\" role=img "
            + "aria-label=\"The number of files by duration\">\(bars)</svg>\n"
    }

    private static func shards(_ totals: ReportTotals) -> String {
        let most = max(1, totals.progress.map { $0.done + $0.failed }.max() ?? 1)
        // The shards that need attention come first, in case there are too many.
        let shown = totals.progress.sorted { ($0.state == "ended" ? 1 : 0) < ($1.state == "ended" ? 1 : 0) }
            .prefix(mostShards)
        var rows = ""
        for shard in shown {
            func percent(_ count: Int) -> String { TerminalText.decimal(100 * Double(count) / Double(most), 2) }
            rows +=
                "<tr><td>\(shard.shard)/\(shard.shards)</td><td class=\(shard.state)>\(shard.state)</td>"
                + "<td class=n>\(number(shard.done))</td><td class=n>\(number(shard.failed))</td>"
                + "<td class=n>\(TerminalText.decimal(shard.seconds, 1))</td><td class=track>"
                + "<i style=\"width:\(percent(shard.done))%\"></i><i class=bad style=\"width:\(percent(shard.failed))%\"></i>"
                + "</td></tr>"
        }
        let rest = totals.progress.count - shown.count
        return
            "<div class=scroll><table><thead><tr><th>shard<th>state<th class=n>done<th class=n>failed<th class=n>seconds<th class=wide>files"
            + "</thead><tbody>\(rows)</tbody></table></div>\n"
            + (rest > 0 ? "<p>and \(number(rest)) more shards that finished</p>\n" : "")
    }

    private static func slowest(_ totals: ReportTotals) -> String {
        let rows = totals.slowest.map {
            "<tr><td>\(escaped($0.path))</td><td class=n>\(TerminalText.decimal($0.seconds, 3))</td>"
                + "<td class=n>\(number($0.bytesBefore))</td><td class=n>\($0.shard)</td></tr>"
        }
        return
            "<table><thead><tr><th>file<th class=n>seconds<th class=n>bytes<th class=n>shard</thead><tbody>\(rows.joined())</tbody></table>\n"
    }

    private static func failures(_ totals: ReportTotals) -> String {
        guard totals.failed > 0 else { return "<p>No database failed.</p>\n" }
        let kinds = totals.failuresByCode.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "<li><b>\(number($0.value))</b> \(escaped($0.key))</li>" }
        let shown = shownFailures(totals).count
        let cut =
            shown < totals.failed
            ? "<p>The table shows \(number(shown)) of \(number(totals.failed)) failures, some of each kind. "
                + "<code>cipherstore report --json</code> prints all of them.</p>\n" : ""
        return "<ul class=kinds>\(kinds.joined())</ul>\n\(cut)"
            + "<p><input id=filter type=search placeholder=\"Filter\" aria-label=\"Filter the failures\"> "
            + "<span id=shown></span> <button id=previous>Previous</button> <button id=next>Next</button></p>\n"
            + "<table id=failures><thead><tr>"
            + ["path", "code", "message", "advice"].map { "<th data-key=\($0)>\($0)" }.joined()
            + ["bytes", "seconds", "shard"].map { "<th class=n data-key=\($0)>\($0)" }.joined()
            + "</thead><tbody></tbody></table>\n"
    }

    /// Returns all failures or, if there are too many, the first of each kind.
    private static func shownFailures(_ totals: ReportTotals) -> [ReportTotals.Failed] {
        guard totals.failed > mostRows else { return totals.failures }
        let most = max(1, mostRows / totals.failuresByCode.count)
        var counts: [String: Int] = [:]
        return totals.failures.filter {
            counts[$0.code, default: 0] += 1
            return counts[$0.code, default: 0] <= most
        }
    }

    private static func number(_ number: some BinaryInteger) -> String { TerminalText.grouped(number) }

    /// Returns a count as at most four characters.
    private static func short(_ count: Int) -> String {
        switch count {
        case ..<10_000: String(count)
        case ..<1_000_000: "\(count / 1_000)k"
        default: "\(TerminalText.decimal(Double(count) / 1e6, count < 10_000_000 ? 1 : 0))M"
        }
    }

    private static func seconds(_ limit: Double) -> String {
        limit < 1 ? "\(Int((limit * 1_000).rounded())) ms" : "\(Int(limit)) s"
    }

    /// Returns text escaped for HTML, with characters that a terminal would act upon made visible.
    private static func escaped(_ text: String) -> String {
        SystemPath.printable(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
