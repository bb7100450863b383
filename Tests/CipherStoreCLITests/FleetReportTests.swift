import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

/// What a run on a fleet writes into a report, and what a later run reads from it.
@Suite struct FleetReportTests {
    private let fixture: FleetFixture
    private let report: String

    init() throws {
        fixture = try FleetFixture()
        report = fixture.tool.keys.path("report.jsonl")
    }

    /// The lines of the report as objects; lines that are not objects are left out.
    private func lines() throws -> [[String: Any]] {
        try String(contentsOfFile: report, encoding: .utf8).split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    private func files() throws -> [String: [String: Any]] {
        var files: [String: [String: Any]] = [:]
        for line in try lines() { if let path = line["path"] as? String { files[path] = line } }
        return files
    }

    private func encrypt(_ arguments: String...) throws -> ToolRun {
        try fixture.tool.run(["encrypt"] + fixture.common + ["--report", report] + arguments)
    }

    private func append(_ text: String) throws {
        let handle = try FileHandle(forWritingTo: URL(filePath: report))
        defer { handle.closeFile() }
        handle.seekToEndOfFile()
        handle.write(Data(text.utf8))
    }

    @Test("A report has a line for each file with its sizes, time and failure, and a line for the end of the run")
    func content() throws {
        for name in ["a.db", "b/b.db"] { try fixture.make(name) }
        try fixture.tool.folder.write("Dear diary\n", to: "diary.db")
        #expect(try encrypt().status == 1)
        let fleet = try #require(try lines().first?["fleet"] as? [String: Any])
        #expect(fleet["goal"] as? String == "encrypted")
        #expect((fleet["options"] as? [String: String])?["key-file"] == fixture.tool.key)
        let files = try files()
        #expect(Set(files.keys) == ["a.db", "b/b.db", "diary.db"])
        let done = try #require(files["b/b.db"])
        #expect(done["outcome"] as? String == "encrypted")
        #expect(try #require(done["bytesBefore"] as? Int) > 0)
        let size = try #require(
            try fixture.tool.folder.url.appending(path: "b/b.db").resourceValues(forKeys: [.fileSizeKey]).fileSize)
        #expect(done["bytesAfter"] as? Int == size)
        #expect(try #require(done["seconds"] as? Double) > 0)
        #expect(done["error"] == nil)
        let error = try #require(files["diary.db"]?["error"] as? [String: Any])
        #expect(error["code"] as? String == "keyDoesNotFit")
        let summary = try #require(try lines().last?["summary"] as? [String: Any])
        #expect(summary["failed"] as? Int == 1 && summary["done"] as? Int == 2)
    }

    @Test("With --resume, files that are done and unchanged are left out, and failed, written and new ones are not")
    func resumes() throws {
        for name in ["a.db", "b.db", "written.db"] { try fixture.make(name) }
        try fixture.tool.folder.write("Dear diary\n", to: "diary.db")
        #expect(try encrypt().status == 1)
        try fixture.make("appeared.db")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: fixture.tool.folder.path("written.db"))
        try FileManager.default.removeItem(atPath: fixture.tool.folder.path("b.db"))
        let run = try encrypt("--resume", report)
        #expect(run.status == 1, "\(run.errors)")
        let lines = try FleetLines(run)
        #expect(
            lines.outcomes == [
                "appeared.db": "encrypted", "diary.db": "failed", "written.db": "alreadyEncrypted",
            ])
        #expect(lines.summary["resumed"] == 1)
        let last = try encrypt("--resume", report)
        #expect(try FleetLines(last).outcomes == ["diary.db": "failed"])
    }

    @Test("With --resume, a file with a log beside it is not left out")
    func log() throws {
        try fixture.make("a.db")
        #expect(try encrypt().status == 0)
        try fixture.tool.folder.write("frames", to: "a.db-wal")
        #expect(try FleetLines(try encrypt("--resume", report)).outcomes.count == 1)
    }

    @Test(
        "Several shards can resume another run's report; a missing report is accepted only if the run writes it")
    func resumesOthers() throws {
        for number in 0..<9 { try fixture.make("\(number).db") }
        #expect(try encrypt("--shard", "0/3").status == 0)
        let others = try (0..<2).map { index in
            try fixture.tool.run(
                ["encrypt"] + fixture.common + [
                    "--shard", "\(index)/2", "--report", fixture.tool.keys.path("\(index)"), "--resume",
                    fixture.tool.keys.path("\(index)"), "--resume", report,
                ])
        }
        #expect(others.map(\.status) == [0, 0])
        let done = try others.map { try FleetLines($0).summary }
        #expect(done.reduce(0) { $0 + ($1["done"] ?? 0) + ($1["resumed"] ?? 0) } == 9)
        #expect(done.reduce(0) { $0 + ($1["unchanged"] ?? 0) } == 0)
        #expect(try encrypt("--resume", fixture.tool.keys.path("none")).status == 66)
    }

    @Test("A truncated line is skipped, its file is processed again, and the next line is complete")
    func cut() throws {
        for name in ["a.db", "b.db"] { try fixture.make(name) }
        #expect(try encrypt().status == 0)
        let text = try String(contentsOfFile: report, encoding: .utf8)
        let whole = text.split(separator: "\n", omittingEmptySubsequences: false)
        let first = whole[..<2].joined(separator: "\n") + "\n"
        try (first + whole[2].prefix(whole[2].count / 2)).write(toFile: report, atomically: false, encoding: .utf8)
        let run = try encrypt("--resume", report)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.errors.contains("the reports contain 1 incomplete line;"))
        #expect(try FleetLines(run).summary["resumed"] == 1)
        #expect(try files().count == 2)
        #expect(try lines().filter { $0["fleet"] != nil }.count == 2, "the line after the truncated line is complete")
        #expect(try fixture.tool.run("report", report).output.contains("1 report line could not be read"))
    }

    @Test("Names with newlines and with bytes that are not UTF-8 are distinguished, and found again")
    func names() throws {
        try fixture.make("a.db")
        let made = try fixture.tool.run(
            shell: "cp a.db \"$(printf 'x\\377.db')\" && cp a.db 'x\\xff.db' && cp a.db 'two\nlines.db'", [])
        try #require(made.status == 0, "\(made.errors)")
        #expect(try encrypt().status == 0)
        let paths = try lines().compactMap { $0["path"] as? String }
        #expect(paths.sorted() == ["a.db", "two\nlines.db", #"x\xff.db"#, #"x\xff.db"#])
        #expect(
            try lines().compactMap { $0["pathBase64"] as? String } == [
                Data("x".utf8 + [0xff] + ".db".utf8).base64EncodedString()
            ])
        let again = try encrypt("--resume", report)
        #expect(try FleetLines(again).summary["resumed"] == 4, "\(again.output)")
        let merged = try fixture.tool.run("report", report, "--json").object()
        #expect(merged["databases"] as? Int == 4)
    }

    static let others: [(arguments: [String], says: String)] = [
        (["--shard", "0/2"], "is a report from a run with 1 shard, but this run has 2"),
        (["--shadow"], "whose goal was \"encrypted\""),
        (["--keep-backup"], "with a different --keep-backup"),
    ]

    @Test("A run with other work or another number of shards cannot append to a report", arguments: others)
    func otherWork(_ other: (arguments: [String], says: String)) throws {
        try fixture.make("a.db")
        #expect(try encrypt().status == 0)
        let before = try Data(contentsOf: URL(filePath: report))
        let run = try fixture.tool.run(["encrypt"] + fixture.common + ["--report", report] + other.arguments)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains(other.says), "\(run.errors)")
        #expect(try Data(contentsOf: URL(filePath: report)) == before)
    }

    @Test("A file that is not a report is not written to", arguments: ["Dear diary\n", "{\"path\":\"a.db\"}\n", "{}"])
    func noReport(_ text: String) throws {
        try fixture.make("a.db")
        try Data(text.utf8).write(to: URL(filePath: report))
        let run = try encrypt()
        #expect(run.status == 65, "\(run.errors)")
        #expect(try run.failureCode() == "notAReport")
        #expect(try String(contentsOfFile: report, encoding: .utf8) == text)
        #expect(try fixture.tool.run("report", report).status == 65)
        #expect(try encrypt("--resume", report).status == 65)
    }

    @Test("A report that another run is writing is refused, and nothing is begun")
    func inUse() throws {
        try fixture.make("a/app.db")
        let first = try fixture.begunWhileFolderIsHeld("a", ["encrypt", "--report", report])
        let run = try encrypt()
        #expect(run.status == 75, "\(run.errors)")
        #expect(run.errors.contains("another run is writing to this report"))
        #expect(try first.release().status == 0)
    }

    #if os(Linux)
        @Test("A killed run leaves complete lines and no summary, and the next run continues")
        func killed() throws {
            for path in ["a/app.db", "b/app.db"] { try fixture.make(path) }
            let begun = try fixture.begunWhileFolderIsHeld("a", ["encrypt", "--report", report])
            #expect(kill(begun.process.identifier, SIGKILL) == 0)
            _ = try begun.process.finish()
            _ = try begun.holder.finish()
            let merged = try fixture.tool.run("report", report)
            #expect(merged.status == 75, "\(merged.output)")
            #expect(merged.output.contains("shards that did not finish: 0"))
            #expect(try encrypt("--resume", report).status == 0)
            #expect(try fixture.tool.run("report", report).status == 0)
        }
    #endif
}
