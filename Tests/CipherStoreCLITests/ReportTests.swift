internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The exit status if the report on completed work cannot be written.
@Suite struct ReportTests {
    /// Ways to have a standard output that nobody reads.
    ///
    /// The first one closes it before the tool begins.
    static let outputs = [
        ">&-", "> /dev/full", ">&4 4>&- 5>&-",
    ]

    /// Runs the tool with such an output; descriptor 4 is a pipe without a reader.
    private func run(_ tool: ToolFixture, _ output: String, _ arguments: [String]) throws -> ToolRun {
        let pipe = "mkfifo pipe; exec 3<>pipe 4>pipe; rm pipe; exec 3>&-; "
        return try tool.run(shell: pipe + "exec \"$@\" \(output)", arguments)
    }

    @Test(
        "If the report cannot be printed, completed work is still a success, and standard error says so",
        arguments: outputs)
    func done(_ output: String) throws {
        let tool = try ToolFixture()
        try tool.make()
        let (key, other) = (["--key-file", tool.key], ["--key-file", tool.otherKey])
        let commands = [
            ["keygen", tool.keys.path("made")],
            ["encrypt", tool.database] + key,
            ["verify", tool.database, "--json"] + key,
            ["rekey", tool.database, "--new-key-file", tool.otherKey] + key,
            ["decrypt", tool.database, "--json"] + other,
            ["migrate", "--config", try tool.configuration(), "--directory", tool.folder.path("")] + key,
            ["encrypt", tool.folder.path(""), "--recursive"] + key,
        ]
        for command in commands {
            let run = try run(tool, output, command)
            #expect(run.status == 0, "\(command[0]): \(run.errors)")
            #expect(run.errors.contains("writing to standard output failed"), "\(command[0])")
        }
        #expect(try tool.folder.names == ["app.db"])
        #expect(try tool.run(["verify", tool.database] + key).status == 0)
    }

    @Test(
        "If output cannot be printed, a failure keeps its status, and a command that only prints fails",
        arguments: outputs)
    func others(_ output: String) throws {
        let tool = try ToolFixture()
        try tool.make(encrypted: true)
        #expect(try run(tool, output, ["verify", tool.database, "--key-file", tool.otherKey]).status == 65)
        try tool.overwrite(at: 4 * CipherSettings().pageSize + 3, with: [0xff, 0xff, 0xff, 0xff])
        #expect(try run(tool, output, ["verify", tool.database, "--key-file", tool.key]).status == 65)
        let status: Int32 = output.contains("full") ? 73 : 74
        #expect(try run(tool, output, ["inspect", tool.database]).status == status)
        #expect(try run(tool, output, ["--help"]).status == status)
    }

    @Test("If a fleet's report cannot be printed, the run stops, and fails unless all files are done")
    func fleet() throws {
        let tool = try ToolFixture()
        for name in ["a.db", "b.db", "c.db"] { try tool.make(name) }
        let arguments = ["--recursive", "--json", "--jobs", "1", "--key-file", tool.key]
        let all = try run(tool, ">&-", ["encrypt", tool.folder.path("")] + arguments)
        #expect(all.status == 74 && all.errors.contains("writing to standard output failed"))
        #expect(try tool.run(["encrypt", tool.folder.path("")] + arguments).status == 0)
        let one = try run(tool, ">&-", ["encrypt", tool.folder.path("a.db")] + arguments)
        #expect(one.status == 0, "\(one.errors)")
    }

    @Test("No file gets the descriptor of a closed stream, so no message is written into a file")
    func closedStreams() throws {
        let tool = try ToolFixture()
        try tool.make()
        let run = try run(tool, "<&- >&- 2>&-", ["encrypt", tool.database, "--keep-backup", "--key-file", tool.key])
        #expect(run.status == 0)
        #expect(try tool.run("verify", tool.database, "--key-file", tool.key).status == 0)
        #expect(try tool.run("verify", tool.database + "-plaintext").status == 0)
        let made = try self.run(tool, "<&- >&- 2>&-", ["keygen", tool.keys.path("made")])
        #expect(made.status == 0)
        #expect(try Data(contentsOf: tool.keys.url.appending(path: "made")).count == 68)
    }

    #if os(Linux)
        @Test(
            "A memory limit without room for a second heap does not slow down a key derivation by repeated mappings",
            .enabled(if: TestProgram.strace.isThere))
        func limitedMemory() throws {
            let tool = try ToolFixture()
            try tool.make()
            let key = try tool.keys.write("a passphrase", to: "passphrase")
            let log = tool.keys.path("log")
            let script = "ulimit -v 250000; exec strace -f -e trace=mmap,munmap -o \"$0\" \"$@\""
            let run = try ToolRun.run(
                "/bin/sh", ["-c", script, log, Programs.tool, "encrypt", tool.database, "--key-file", key])
            #expect(run.status == 0, "\(run.errors)")
            let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            #expect(lines.count < 20_000, "\(lines.count) calls")
        }
    #endif
}
