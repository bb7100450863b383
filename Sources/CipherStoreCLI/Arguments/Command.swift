/// A command of the tool: from this one description come its parsing and its help.
struct Command: Sendable {
    /// An argument that is not an option.
    struct Operand: Sendable {
        let name: String
        let help: String

        static let database = Operand(name: "DB", help: "The database file; a symbolic link is followed.")
    }

    /// The word on the command line.
    let name: String
    /// What it does, in one line.
    let summary: String
    let operands: [Operand]
    /// Its own options; `--json` and `--help` belong to every command.
    let options: [Option]
    /// What else its users should know, a paragraph each.
    let notes: [String]
    let run: @Sendable (Invocation) throws -> ExitStatus

    var allOptions: [Option] { options + [.json, .help] }

    /// The commands, in the order of the help.
    static let all: [Command] = [
        inspect, encrypt, decrypt, rekey, verify, plan, migrate, history, validate, baseline, repair, query, keygen,
    ]
}
