import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

/// Inputs that never end, and processes that may open too few files.
struct EndlessInputTests {
    private let fixture: FleetFixture

    init() throws {
        fixture = try FleetFixture()
        try fixture.make("a.db")
    }

    @Test(
        "A device that never ends is refused as a list or a report",
        arguments: ["--files-from", "--resume"], ["/dev/zero", "/dev/urandom"])
    func device(_ option: String, _ device: String) throws {
        let before = try fixture.tool.snapshot()
        let run = try fixture.run("encrypt", option, device)
        #expect(run.status == 65, "\(run.errors)")
        #expect(try run.failureCode() == "notAFile")
        #expect(try fixture.tool.snapshot() == before)
        #expect(try fixture.tool.run("report", device).status == 65)
        let input = try fixture.tool.run(
            shell: "\"$@\" <\(device)", ["encrypt"] + fixture.common + ["--files-from", "-"])
        #expect(input.status == 65, "\(input.errors)")
        #expect(try fixture.tool.snapshot() == before)
    }

    @Test("A pipe with endless empty names is not a list", arguments: ["cat /dev/zero", "yes ''"])
    func emptyNames(_ writer: String) throws {
        let before = try fixture.tool.snapshot()
        let run = try fixture.tool.run(
            shell: "\(writer) | \"$@\"", ["encrypt"] + fixture.common + ["--files-from", "-"])
        #expect(run.status == 65, "\(run.errors)")
        #expect(run.errors.contains("empty names"), "\(run.errors)")
        #expect(try fixture.tool.snapshot() == before)
    }

    @Test("An empty device, a pipe and a substituted process are lists")
    func finite() throws {
        let empty = try fixture.tool.run(
            shell: "\"$@\" </dev/null", ["encrypt"] + fixture.common + ["--files-from", "-"])
        #expect(empty.status == 0, "\(empty.errors)")
        let path = fixture.tool.keys.path("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let run = try fixture.tool.run(
            shell: "echo a.db >'\(path)' & \"$@\"", ["encrypt"] + fixture.common + ["--files-from", path])
        #expect(try FleetLines(run).outcomes == ["a.db": "encrypted"], "\(run.errors)")
    }

    @Test("A signal ends a run that waits for the rest of a list", arguments: [SIGTERM, SIGINT, SIGHUP])
    func signal(_ number: Int32) throws {
        // The NUL shows what separates the names, so the first one is processed at once.
        let path = fixture.tool.keys.path("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let writer = try FileHandle(forUpdating: URL(filePath: path))
        try writer.write(contentsOf: Data("a.db\0".utf8))
        let run = try ToolProcess(Programs.tool, ["encrypt"] + fixture.common + ["--files-from", path])
        while try !run.outputSoFar.contains("encrypted") { try #require(run.isRunning) }
        #expect(kill(run.identifier, number) == 0)
        let ended = try run.finish()
        #expect(ended.status == 128 + number, "\(ended.errors)")
        try writer.close()
    }

    @Test("A process that may not open another file says so, and leaves everything as it was")
    func descriptors() throws {
        let tool = fixture.tool
        try tool.make("e.db", encrypted: true)
        let before = try tool.snapshot()
        let commands = [
            ["recover", tool.folder.path("a.db"), "--output", tool.folder.path("new.db")],
            ["recover", tool.folder.path("e.db"), "--output", tool.folder.path("new.db")],
            ["encrypt", tool.folder.path("a.db"), "--shadow"],
            ["backup", tool.folder.path("e.db"), "--output", tool.folder.path("new.db")],
            ["verify", tool.folder.path("e.db")],
        ]
        for command in commands {
            var refusals = 0
            // Below 4, no program starts.
            for limit in 4..<13 {
                let run = try tool.run(
                    shell: "ulimit -n \(limit); \"$@\"", command + ["--key-file", tool.key, "--json"])
                if run.status == 0 {
                    try? FileManager.default.removeItem(atPath: tool.folder.path("new.db"))
                } else if run.output.hasPrefix("{") {
                    refusals += 1
                    #expect(run.errors.contains("oo many"), "\(command[0]) with \(limit): \(run.errors)")
                    #expect(!run.errors.contains("another program"), "\(command[0]) with \(limit): \(run.errors)")
                }
                #expect(try tool.snapshot() == before)
            }
            #expect(refusals > 0)
        }
    }
}
