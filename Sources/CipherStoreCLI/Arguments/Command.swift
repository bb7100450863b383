internal import CipherConfigurationText

/// A command of the tool.
///
/// Its parsing, help, manual page and completions are all made from this description.
package struct Command: Sendable {
    /// An argument that is not an option.
    package struct Operand: Sendable {
        let name: String
        let kind: ArgumentKind
        let help: String
        /// Whether the operand may be omitted.
        package let isOptional: Bool
        /// Whether the operand may be repeated; only the last operand can be.
        package let isRepeatable: Bool

        init(
            _ name: String, kind: ArgumentKind = .text, isOptional: Bool = false, isRepeatable: Bool = false,
            _ help: String
        ) {
            self.name = name
            self.kind = kind
            self.isOptional = isOptional
            self.isRepeatable = isRepeatable
            self.help = help
        }

        static let database = Operand(
            "DB", kind: .file, "The database file. If it is a symbolic link, its target is used.")
        /// How the operand is written in the help, such as `FILE...`.
        var usage: String { name + (isRepeatable ? "..." : "") }

        static let databases = Operand(
            "DB", kind: .file,
            "The database file or, with --recursive, a folder. If it is a symbolic link, its target is used.")
    }

    /// The word on the command line.
    package let name: String
    /// What the command does, in one line.
    package let summary: String
    package let operands: [Operand]
    /// The command's own options; ``allOptions`` adds `--help`, and also `--json` unless ``printsText``.
    package let options: [Option]
    /// Further paragraphs of the help.
    let notes: [String]
    /// Example command lines, without the program's name.
    package let examples: [String]
    /// Whether the command prints a text that has no JSON form.
    let printsText: Bool
    /// Whether the exit status is the command's result, and the output only describes it.
    let isToldByStatus: Bool
    let run: @Sendable (Invocation) throws -> ExitStatus

    init(
        name: String, summary: String, operands: [Operand] = [], options: [Option] = [], notes: [String] = [],
        examples: [String] = [], printsText: Bool = false, isToldByStatus: Bool = false,
        run: @escaping @Sendable (Invocation) throws -> ExitStatus
    ) {
        self.name = name
        self.summary = summary
        self.operands = operands
        self.options = options
        self.notes = notes
        self.examples = examples
        self.printsText = printsText
        self.isToldByStatus = isToldByStatus
        self.run = run
    }

    package var allOptions: [Option] { options + (printsText ? [] : [.json]) + [.help] }
}

extension Command {
    /// Commands that belong together.
    struct Group: Sendable {
        let title: String
        let commands: [Command]
    }

    /// The commands, in the order of the help.
    static let groups = [
        Group(
            title: "Commands for a database file",
            commands: [inspect, diagnose, encrypt, decrypt, rekey, verify, backup, restore, recover, query]),
        Group(
            title: "Commands for an app's database and its configuration",
            commands: [plan, migrate, history, validate, baseline, repair]),
        Group(title: "Other commands", commands: [report, keygen, help, version, completions, manual]),
    ]

    package static let all: [Command] = groups.flatMap(\.commands)

    /// Returns the command with the given name.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage`, which suggests a similar name if there is one.
    static func named(_ word: String) throws -> Command {
        guard let command = all.first(where: { $0.name == word }) else {
            let suggestion = Suggestion.nearest(to: word, among: all.map(\.name))
            throw CommandFailure.usage(
                "unknown command \(word)", advice: suggestion.map { "did you mean \($0)?" } ?? "see cipherstore --help")
        }
        return command
    }
}
