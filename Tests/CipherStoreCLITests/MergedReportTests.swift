import CipherTestSupport
import Foundation
import Testing

/// The report that `report` makes from the reports of several runs.
@Suite struct MergedReportTests {
    private let tool: ToolFixture

    init() throws { tool = try ToolFixture() }

    /// Writes a report with these lines after its header.
    private func report(_ name: String, shard: Int = 0, of shards: Int = 1, started: Double = 1, _ lines: [String])
        throws -> String
    {
        let header = """
            {"fleet":{"folder":"/data","goal":"encrypted","host":"a","options":{},"process":1,"shard":\(shard),\
            "shards":\(shards),"started":\(started),"version":"1.0.0"}}
            """
        return try tool.keys.write(([header] + lines).joined(separator: "\n") + "\n", to: name)
    }

    private static func line(_ path: String, _ result: String, at finished: Double, shard: Int = 0, code: String? = nil)
        -> String
    {
        let error = code.map { #","error":{"code":"\#($0)","message":"it failed","advice":"mend it"}"# } ?? ""
        return """
            {"path":"\(path)","result":"\(result)","outcome":"\(result)","bytesBefore":10,"bytesAfter":20,\
            "seconds":0.5,"finished":\(finished),"shard":\(shard)\(error)}
            """
    }

    private static func ended(_ shard: Int = 0, left: Int = 0) -> String {
        """
        {"shard":\(shard),"summary":{"databases":1,"done":1,"unchanged":0,"failed":0,"skipped":0,"left":\(left),\
        "warnings":0,"plaintext":0,"seconds":1}}
        """
    }

    private func merge(_ reports: String..., arguments: [String] = []) throws -> (status: Int32, totals: [String: Any])
    {
        let run = try tool.run(["report", "--json"] + reports + arguments)
        return (run.status, try run.object())
    }

    @Test("The final result of a file is used, whatever the order of the reports", arguments: [false, true])
    func last(isReversed: Bool) throws {
        let first = try report(
            "1",
            [
                Self.line("a", "failed", at: 2, code: "busy"), Self.line("b", "done", at: 3),
                Self.line("c", "done", at: 4), Self.line("d", "done", at: 5), Self.line("e", "unchanged", at: 5),
            ])
        let second = try report(
            "2", started: 10,
            [
                Self.line("a", "done", at: 12), Self.line("b", "failed", at: 13, code: "corrupt"),
                Self.line("c", "unchanged", at: 14), Self.line("d", "failed", at: 15, code: "busy"), Self.ended(),
            ])
        let (status, totals) = try isReversed ? merge(second, first) : merge(first, second)
        #expect(status == 1)
        #expect(totals["databases"] as? Int == 5)
        #expect(totals["done"] as? Int == 3)
        #expect(totals["unchanged"] as? Int == 1)
        #expect(totals["failuresByCode"] as? [String: Int] == ["corrupt": 1])
        #expect(totals["bytesBefore"] as? Int == 50 && totals["bytesAfter"] as? Int == 100)
    }

    @Test("Missing and unfinished shards are reported, and the status is 75")
    func missing() throws {
        let first = try report("1", shard: 0, of: 4, [Self.ended(0)])
        let second = try report("2", shard: 2, of: 4, [Self.line("a", "done", at: 2, shard: 2)])
        let third = try report("3", shard: 3, of: 4, [Self.ended(3, left: 5)])
        let (status, totals) = try merge(first, second, third)
        #expect(status == 75)
        #expect(totals["missingShards"] as? [Int] == [1])
        #expect(totals["unfinishedShards"] as? [Int] == [2, 3])
        let rest = try report("4", shard: 1, of: 4, started: 5, [Self.ended(1)])
        let again = try (2...3).map { try report("again-\($0)", shard: $0, of: 4, started: 5, [Self.ended($0)]) }
        #expect(try merge(first, second, third, rest, again[0], again[1]).status == 0)
    }

    @Test("A merged report is complete if all shards of one count ended, even if those of another count did not")
    func otherCount() throws {
        let first = try report("1", shard: 0, of: 4, [Self.line("a", "done", at: 2)])
        let second = try report("2", started: 5, [Self.line("b", "done", at: 6), Self.ended()])
        let (status, totals) = try merge(first, second)
        #expect(status == 0)
        #expect(totals["shards"] as? Int == 1 && totals["databases"] as? Int == 2)
    }

    @Test("A file that two shards processed is reported with both of them, and is counted once")
    func givenTwice() throws {
        let first = try report("1", shard: 0, of: 2, [Self.line("a", "done", at: 3, shard: 0), Self.ended(0)])
        let second = try report(
            "2", shard: 1, of: 2, [Self.line("a", "failed", at: 4, shard: 1, code: "busy"), Self.ended(1)])
        let (status, totals) = try merge(first, second)
        #expect(status == 0)
        #expect(totals["databases"] as? Int == 1)
        let twice = try #require((totals["givenTwice"] as? [[String: Any]])?.first)
        #expect(twice["path"] as? String == "a" && twice["shards"] as? [Int] == [0, 1])
    }

    @Test("With --against, databases missing from the reports and reported files that are gone are listed")
    func against() throws {
        for name in ["a.db", "new.db"] { try tool.make(name) }
        let report = try report(
            "1", [Self.line("a.db", "done", at: 2), Self.line("gone.db", "done", at: 2), Self.ended()])
        let (status, totals) = try merge(report, arguments: ["--against", tool.folder.path("")])
        #expect(status == 75)
        #expect(totals["missing"] as? [String] == ["new.db"])
        #expect(totals["vanished"] as? [String] == ["gone.db"])
    }

    @Test("Reports of different work are not merged")
    func otherWork() throws {
        let first = try report("1", [Self.ended()])
        let other = try String(contentsOfFile: first, encoding: .utf8).replacing("encrypted", with: "sound")
        let run = try tool.run("report", first, try tool.keys.write(other, to: "2"))
        #expect(run.status == 64 && run.errors.contains("whose goal was \"sound\""), "\(run.errors)")
    }

    @Test("The HTML page shows the numbers, and no name or message becomes markup")
    func page() throws {
        let evil = "</script><b>"
        let report = try report(
            "1",
            [Self.line("\(evil)a", "failed", at: 2, code: "corrupt"), Self.line("ok", "done", at: 3), Self.ended()])
        let page = tool.keys.path("page.html")
        let run = try tool.run("report", report, "--html", page)
        #expect(run.status == 1 && run.output.contains("1 corrupt"))
        let html = try String(contentsOfFile: page, encoding: .utf8)
        #expect(!html.contains(evil))
        #expect(html.components(separatedBy: "</script>").count == 3)
        #expect(html.contains("<b>2</b>databases"))
    }

    @Test("The exit status for more than 63 failures is 63")
    func manyFailures() throws {
        let lines = (0..<70).map { Self.line("\($0)", "failed", at: 2, code: "corrupt") }
        #expect(try tool.run("report", try report("1", lines)).status == 63)
    }
}
