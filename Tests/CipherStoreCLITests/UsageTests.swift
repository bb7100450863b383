internal import CipherSQLite
internal import CipherStoreCLI
import CipherTestSupport
import Testing

/// Wrong command lines, and the help.
@Suite struct UsageTests {
    static let wrong: [(arguments: [String], says: String)] = [
        ([], "no command was specified"),
        (["inspct", "x"], "did you mean inspect?"),
        (["shrink", "x"], "unknown command"),
        (["decrypt", "x"], "a key is required"),
        (["encrypt", "x"], "to create a key file, run cipherstore keygen FILE"),
        (["rekey", "x", "--new-key-file", "y"], "a key is required"),
        (["rekey", "x", "--key-env", "K", "--plaintext-header", "7"], "--plaintext-header must be 0"),
        (["rekey", "x", "--key-env", "K", "--new-key-env", "L", "--new-key-file", "y"], "cannot be used together"),
        (["--verson"], "did you mean --version?"),
        (["--json", "inspect"], "write cipherstore inspect, followed by the options"),
        (["--json"], "no command was specified"),
        (["encrypt", "a", "b", "--key-env", "K"], "run cipherstore encrypt DIR --recursive"),
        (["rekey", "x", "--key-file", "-", "--new-key-file", "-"], "only one key can be read from standard input"),
        (["inspect"], "takes the argument DB"),
        (["inspect", "a", "b"], "takes the argument DB"),
        (["inspect", "x", "--kye-file", "k"], "did you mean --key-file?"),
        (["inspect", "x", "--key", "hidden"], "--key-file, --key-env, --key-credential"),
        (["inspect", "x", "--key=hidden"], "--key-file, --key-env, --key-credential"),
        (["inspect", "x", "-k", "hidden"], "unknown option -k"),
        (["inspect", "x", "--key", "hidden"], "change the key with cipherstore rekey"),
        (["encrypt", "x", "secret", "--key-file", "a"], "keys are specified with options such as --key-file"),
        (["inspect", "x", "--key", "hidden"], "other users could read the key in the process list"),
        (["inspect", "x", "--password=hidden"], "specify the key with one of these options: --key-file"),
        (["migrate", "--directory", "x"], "if the app has no configuration, run cipherstore encrypt"),
        (["inspect", "x", "--key-file"], "the value is missing"),
        (["inspect", "x", "--key-file="], "the value is missing"),
        (["encrypt", "x", "--key-file", ""], "the value is missing"),
        (["rekey", "x", "--key-env=K", "--new-key-credential="], "the value is missing"),
        (["inspect", "x", "--json=hidden"], "takes no value"),
        (["inspect", "x", "--json", "--json"], "specified twice"),
        (["inspect", "x", "--detect"], "--detect requires a key"),
        (["inspect", "x", "--key-file", "a", "--key-env", "B"], "cannot be used together"),
        (["inspect", "x", "--cipher-compatibility", "5"], "from 1 to 4"),
        (["encrypt", "x"], "a key is required"),
        (["encrypt", "x", "--key-file", "a", "--key-credential", "b"], "cannot be used together"),
        (["encrypt", "x", "--key-file", "a", "--cipher-compatibility", "2"], "from 3 to 4"),
        (["encrypt", "x", "--key-file", "a", "--busy-timeout", "-1"], "number of seconds"),
        (["encrypt", "x", "--key-file", "a", "--lock-timeout", "soon"], "number of seconds"),
        (["encrypt", "x", "--key-file", "a", "--progress", "often"], "auto, always, never"),
        (["encrypt", "x", "--key-file", "a", "--on-damage", "heal"], "refuse, rebuildIndexes"),
        (["diagnose", "x", "--key-file", "a", "--max-rounds", "0"], "a whole number, 1 or greater"),
        (["encrypt", "x", "--key-file", "a", "--jobs", "2"], "--jobs requires --recursive"),
        (["verify", "x", "--name", "*.db"], "--name requires --recursive"),
        (["verify", "/", "--recursive", "--jobs", "0"], "--jobs must be a number"),
        (["encrypt", "x", "--key-file", "a", "--shadow", "--keep-backup"], "cannot be used together"),
        (["migrate", "x", "--config", "c", "--directory", "."], "DIR requires --recursive"),
        (["migrate", "x", "--config", "c", "--directory", ".", "--recursive"], "instead of --directory"),
        (["migrate", "--config", "c", "--recursive"], "pass the folder as the argument DIR"),
        (["plan", "--directory", "."], "--config FILE is required"),
        (["migrate", "--config", "c"], "is required"),
        (["validate", "--directory", "."], "--config FILE is required"),
        (["repair", "--config", "c"], "is required"),
        (["baseline", "--config", "c", "--directory", ".", "--at", "new"], "a version such as 24"),
        (["query", "x"], "takes the arguments DB SQL"),
        (["query", "x", "SELECT 1", "--csv", "--json"], "cannot be used together"),
        (["keygen"], "takes the argument FILE"),
        (["completions", "fish"], "available only for bash and zsh"),
        (["completions", "bash", "--json"], "unknown option --json"),
        (["keygen", "a", "--key-file", "b"], "unknown option --key-file"),
    ]

    @Test(
        "A wrong command line is refused with the reason, and no word that may be a secret is repeated",
        arguments: wrong)
    func wrongCommandLine(_ line: (arguments: [String], says: String)) throws {
        let fixture = try ToolFixture()
        let run = try fixture.run(line.arguments)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains(line.says), "\(run.errors)")
        #expect(run.errors.hasPrefix("cipherstore: "))
        #expect(!run.errors.contains("hidden"), "what may be a secret in the wrong place was repeated")
        #expect(try fixture.folder.names.isEmpty)
    }

    @Test("Without a command, the tool lists the commands and exits with 64")
    func noCommand() throws {
        let run = try ToolFixture().run()
        #expect(run.status == 64)
        #expect(run.output == (try ToolFixture().run("help").output))
    }

    @Test("-h is the same as --help, with and without a command", arguments: [[], ["encrypt"]])
    func shortHelp(_ command: [String]) throws {
        let run = try ToolFixture().run(command + ["-h"])
        #expect(run.status == 0)
        #expect(run.output == (try ToolFixture().run(command + ["--help"]).output))
    }

    @Test("A wrong command line is reported as JSON if --json is specified")
    func wrongCommandLineAsJSON() throws {
        let run = try ToolFixture().run("encrypt", "x", "--json")
        #expect(run.status == 64)
        #expect(try run.failureCode() == "usage")
    }

    @Test("The overview fits the terminal, with a line for each command")
    func overviewFitsTheTerminal() throws {
        let overview = try ToolFixture().run("--help")
        #expect(overview.status == 0)
        #expect(overview.errors.isEmpty)
        let lines = overview.output.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(overview.output)")
        for command in Command.all {
            #expect(
                lines.contains { $0.hasPrefix("  \(command.name) ") && $0.hasSuffix(" \(command.summary)") },
                "\(command.name) has more than a line")
        }
    }

    @Test("The help of a command fits the terminal, and begins with its usage", arguments: Command.all.map(\.name))
    func commandHelpFitsTheTerminal(_ name: String) throws {
        let help = try ToolFixture().run(name, "--help")
        #expect(help.status == 0)
        #expect(help.errors.isEmpty)
        #expect(help.output.hasPrefix("Usage: cipherstore \(name)"))
        #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(help.output)")
    }

    /// The words of an example as a shell would split them, up to a redirection.
    private static func words(_ example: String) -> [String] {
        let parts = example.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        let words = parts.flatMap { index, part in
            index.isMultiple(of: 2) ? part.split(separator: " ").map(String.init) : [String(part)]
        }
        return Array(words.prefix { $0 != "|" && $0 != ">" })
    }

    @Test("Every example in the help is a correct command line", arguments: Command.all.flatMap(\.examples))
    func exampleIsCorrect(_ example: String) throws {
        let words = Self.words(example)
        let command = try #require(Command.all.first { $0.name == words.first })
        let invocation = try ArgumentParser.parse(Array(words.dropFirst()), command.allOptions)
        let needed = command.operands.count { !$0.isOptional }
        #expect((needed...command.operands.count).contains(invocation.operands.count))
        #expect(command.options.allSatisfy { !$0.isRequired || invocation.has($0) })
    }

    @Test("The version output names the tool and the engine")
    func version() throws {
        let run = try ToolFixture().run("--version")
        #expect(run.status == 0)
        #expect(run.output == (try ToolFixture().run("version").output))
        #expect(run.output.hasPrefix("cipherstore "))
        #expect(run.output.contains("SQLCipher "))
        #expect(run.output.contains("wal_autocheckpoint = 0") == Engine.current.hasWALResetFault)
        for fault in Engine.current.faults { #expect(run.output.contains(fault.id), "\(fault.id)") }
        let json = try ToolFixture().run("version", "--json")
        #expect(json.status == 0)
        for fault in Engine.current.faults { #expect(json.output.contains(fault.id), "\(fault.id)") }
    }

    @Test("The version output states what fences each fault, or that nothing does and what to avoid")
    func faults() throws {
        let words = try ToolFixture().run("version").output.split { $0 == " " || $0 == "\n" }
        let text = words.joined(separator: " ")
        let json = try ToolFixture().run("version", "--json").object()
        let entries = try #require(json["faults"] as? [[String: Any]])
        #expect(entries.map { $0["id"] as? String } == Engine.current.faults.map(\.id))
        for (fault, entry) in zip(Engine.current.faults, entries) {
            let fence = fault.fence.map { "fenced: \($0)" } ?? "not fenced: \(fault.advice ?? "")"
            #expect(text.contains("\(fault.id) \(fault.cause); \(fence); fixed in \(fault.fixedIn)"), "\(text)")
            #expect(entry["fence"] as? String == fault.fence, "\(fault.id)")
            #expect(entry["advice"] as? String == fault.advice, "\(fault.id)")
        }
    }

    @Test(
        "A name like an option, a URI or a control sequence is accepted as a file name",
        arguments: ["-odd.db", "--json", "a b'c\"d%20?mode=x#y.db", "line\nend.db", "\u{1b}[31mred.db"])
    func oddNames(_ name: String) throws {
        let fixture = try ToolFixture()
        try fixture.make(name)
        let run = try fixture.run("inspect", "--", name)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.output.contains("plaintext"))
        #expect(!run.output.contains("\u{1b}"))

        let encrypted = try fixture.run("encrypt", "--key-file", fixture.key, "--", name)
        #expect(encrypted.status == 0, "\(encrypted.errors)")
        #expect(!encrypted.output.contains("\u{1b}"))
        #expect(try fixture.folder.names == [name])
    }

    @Test("Options may follow operands, whatever the environment says", arguments: ["1", ""])
    func optionsBehindOperands(_ posixlyCorrect: String) throws {
        let fixture = try ToolFixture()
        try fixture.make()
        let run = try fixture.run(
            ["inspect", fixture.database, "--json"],
            environment: posixlyCorrect.isEmpty ? [:] : ["POSIXLY_CORRECT": posixlyCorrect])
        #expect(run.status == 0)
        #expect(try run.object()["state"] as? String == "plaintext")
    }
}
