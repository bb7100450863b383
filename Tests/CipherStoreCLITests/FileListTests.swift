import CipherTestSupport
import Foundation
import Testing

/// Fleets whose files an operator lists, and the resources that a run may use.
@Suite struct FileListTests {
    private let fixture: FleetFixture

    init() throws { fixture = try FleetFixture() }

    /// Runs a command on the names in a list.
    private func run(_ names: String, _ arguments: String..., command: String = "encrypt") throws -> ToolRun {
        let list = try fixture.tool.keys.write(names, to: "list")
        return try fixture.tool.run([command] + fixture.common + ["--files-from", list] + arguments)
    }

    @Test("Only the files in a list are processed, whether newlines or NULs separate them, even from standard input")
    func lists() throws {
        for name in ["a.db", "b/no-ending", "c.db", "two\nlines.db"] { try fixture.make(name) }
        let lines = try FleetLines(try run("a.db\n\n./b//no-ending\n"))
        #expect(lines.outcomes == ["a.db": "encrypted", "b/no-ending": "encrypted"])
        let absolute = fixture.tool.folder.path("a.db")
        let again = try FleetLines(try run("\(absolute)\0two\nlines.db"))
        #expect(again.outcomes == ["a.db": "alreadyEncrypted", "two\nlines.db": "encrypted"])
        let input = try fixture.tool.run(
            shell: "printf 'c.db\\n' | \"$@\"", ["encrypt"] + fixture.common + ["--files-from", "-"])
        #expect(try FleetLines(input).outcomes == ["c.db": "encrypted"])
    }

    @Test("A listed name that is outside the folder, missing, a link or a folder fails or is skipped")
    func wrongNames() throws {
        let outside = try ToolFixture()
        try outside.make()
        try fixture.make("a/app.db")
        let folder = fixture.tool.folder
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("link.db"), withDestinationPath: outside.database)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("linked"), withDestinationPath: outside.folder.path(""))
        let before = try outside.snapshot()
        let run = try run(
            "../x.db\n\(outside.database)\nnone.db\nnone/app.db\na\nlinked/app.db\nlink.db\na/../a/app.db\n")
        #expect(run.status == 7, "\(run.errors)")
        let lines = try FleetLines(run)
        #expect(lines.outcomes["link.db"] == "skipped")
        #expect(lines.errorCodes["none.db"] == "missingFile")
        #expect(lines.errorCodes["none/app.db"] == "missingFile")
        #expect(lines.errorCodes["a"] == "notAFile")
        #expect(Set(lines.errorCodes.values) == ["missingFile", "notAFile"])
        #expect(try outside.snapshot() == before)
        #expect(try fixture.run("encrypt").status == 0)
    }

    @Test("A list is divided into shards in the same way as a search")
    func shards() throws {
        let names = (0..<8).map { "\($0 % 2)/\($0).db" }
        for name in names { try fixture.make(name) }
        for index in 0..<3 {
            let listed = try FleetLines(try run(names.joined(separator: "\n"), "--shadow", "--shard", "\(index)/3"))
            let found = try FleetLines(try fixture.run("encrypt", "--shadow", "--shard", "\(index)/3"))
            #expect(listed.outcomes == found.outcomes)
        }
    }

    @Test("A run with limits on open files, priority and speed has the same result as one without them")
    func limits() throws {
        for number in 0..<6 { try fixture.make("\(number).db") }
        // Without leases, the files that stay locked until the end of the run count too.
        let most = LinuxCalls.areUsed ? "64" : "4096"
        let run = try fixture.run(
            "encrypt", "--jobs", "8", "--max-open", most, "--nice", "5", "--bytes-per-second", "100M")
        #expect(run.status == 0, "\(run.errors)")
        #expect(try FleetLines(run).summary["done"] == 6)
    }

    static let wrong: [(arguments: [String], says: String)] = [
        (["--max-open", "10"], "--max-open must be at least 56"),
        (["--nice", "20"], "from 1 to 19"),
        (["--bytes-per-second", "fast"], "such as 50M"),
        (["--bytes-per-second", "0"], "such as 50M"),
        (["--name", "*.db", "--files-from", "list"], "cannot be used together"),
    ]

    @Test("Impossible limits are refused before the run begins", arguments: wrong)
    func wrongLimits(_ given: (arguments: [String], says: String)) throws {
        let run = try fixture.tool.run(["encrypt"] + fixture.common + given.arguments)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains(given.says), "\(run.errors)")
    }

    @Test(
        "A key file path with an unknown placeholder is refused",
        arguments: ["{tenant}", "{}", "{Name}"])
    func placeholder(_ placeholder: String) throws {
        try fixture.make("a.db")
        let path = fixture.tool.keys.path("\(placeholder).key")
        let run = try fixture.tool.run(
            "encrypt", fixture.tool.folder.path(""), "--recursive", "--key-file", path)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains("the unknown placeholder \(placeholder)"))
    }
}
