internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherStoreCLI
import Testing

/// The parts of the tool that need no process.
@Suite struct OutputTests {
    @Test("Every failure has an exit code other than those of success and wrong usage")
    func everyFailureHasAnExitCode() {
        let known = Set(ExitStatus.meanings.map(\.0.code))
        for code in StoreError.Code.allCases {
            #expect(known.contains(ExitStatus(code).code))
            #expect(ExitStatus(code) != .done && ExitStatus(code) != .usage)
        }
    }

    @Test("The progress line fits the terminal, and is plain ASCII", arguments: [20, 40, 80, 200])
    func progressFitsTheTerminal(_ width: Int) {
        for percent in 0...100 {
            for stage in UpgradeStage.allCases {
                let progress = UpgradeProgress(
                    stage: stage, fraction: Double(percent) / 100, bytes: Int64(percent) * 4_000_000,
                    totalBytes: 400_000_000)
                let line = ProgressBar.line(progress, seconds: 1_000, stageSeconds: 0.5, width: width)
                #expect(line.count < width)
                #expect(line.unicodeScalars.allSatisfy { (0x20..<0x7f).contains($0.value) })
            }
        }
    }

    @Test("The progress line shows the stage, the percentage, the speed and the remaining time")
    func progressTells() {
        let progress = UpgradeProgress(stage: .building, fraction: 0.5, bytes: 200_000_000, totalBytes: 400_000_000)
        let line = ProgressBar.line(progress, seconds: 65, stageSeconds: 2, width: 100)
        #expect(line == "encrypting [####################--------------------]  50%  100 MB/s  ETA 1:05")
    }

    @Test("The progress line of a fleet fits the terminal, and shows its counts", arguments: [20, 40, 80, 200])
    func fleetProgressFitsTheTerminal(_ width: Int) {
        for percent in 0...100 {
            let line = FleetBar.line(
                finished: percent * 100, failed: percent, total: 10_000, fraction: Double(percent) / 100, seconds: 900,
                width: width)
            #expect(line.count < width)
        }
        let line = FleetBar.line(finished: 1_200, failed: 3, total: 10_000, fraction: 0.25, seconds: 60, width: 80)
        #expect(line == "1,200 of 10,000 [#########---------------------------]  25%  3 failed  ETA 3:00")
    }

    @Test("A template names the key file of each database")
    func keyFileOfEachDatabase() {
        func path(_ template: String, _ database: String) -> String? {
            KeyFileTemplate(template)?.path(for: database)
        }
        #expect(path("keys/{name}.key", "/tenants/anna/app.db") == "keys/app.key")
        #expect(path("keys/{folder}-{name}", "/tenants/anna/app.v2.db") == "keys/anna-app.v2")
        #expect(path("{name}", "/.db") == ".db")
        #expect(path("{name}", "/a/{folder}.db") == "{folder}")
        #expect(path("keys/key", "/a/app.db") == nil)
    }

    @Test("Columns with the same name are distinguished in JSON")
    func distinctNames() {
        #expect(JSONRows.distinct(["a", "a", "b", "a"]) == ["a", "a_2", "b", "a_3"])
        #expect(JSONRows.distinct(["a", "a", "a_2"]) == ["a", "a_3", "a_2"])
        #expect(JSONRows.distinct([]) == [])
    }

    @Test("Numbers are grouped by thousands and rounded to the given digits")
    func numbers() {
        #expect(TerminalText.grouped(0) == "0")
        #expect(TerminalText.grouped(999) == "999")
        #expect(TerminalText.grouped(-1_234_567) == "-1,234,567")
        #expect(TerminalText.decimal(0.005, 2) == "0.01")
        #expect(TerminalText.decimal(12, 0) == "12")
        #expect(TerminalText.decimal(99.999, 2) == "100.00")
    }

    @Test("Text is shown without characters that a terminal would interpret")
    func escapes() {
        #expect(SystemPath.printable("plain é 你") == "plain é 你")
        #expect(SystemPath.printable("a\u{1b}]0;x\u{7}\n\u{9b}\u{202e}") == "a\\u{1b}]0;x\\u{7}\\n\\u{9b}\\u{202e}")
    }
}
