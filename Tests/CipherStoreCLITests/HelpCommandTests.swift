import Testing

/// The command `help`, as in other tools.
struct HelpCommandTests {
    let fixture: ToolFixture

    init() throws {
        fixture = try ToolFixture()
    }

    @Test("help prints the same as --help")
    func overview() throws {
        let run = try fixture.run("help")
        #expect(run.status == 0)
        let other = try fixture.run("--help")
        #expect(run.output == other.output)
    }

    @Test("help COMMAND prints the same as COMMAND --help", arguments: ["encrypt", "plan", "keygen", "help"])
    func command(name: String) throws {
        let run = try fixture.run("help", name)
        #expect(run.status == 0)
        #expect(run.output.hasPrefix("Usage: cipherstore \(name)"))
        let other = try fixture.run(name, "--help")
        #expect(run.output == other.output)
    }

    @Test("help for an unknown command exits with 64")
    func unknown() throws {
        let run = try fixture.run("help", "encrpyt")
        #expect(run.status == 64)
        #expect(run.errors.contains("did you mean encrypt?"))
    }

    @Test("A speed below one megabyte per second is not printed")
    func smallFiles() throws {
        try fixture.make("small.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let run = try fixture.run("encrypt", "small.db", "--key-file", fixture.key)
        #expect(run.status == 0)
        #expect(!run.output.contains("(0 MB/s)"))
    }
}
