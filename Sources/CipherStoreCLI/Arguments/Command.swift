internal import CipherConfigurationText

/// A command of the tool: from this one description come its parsing, its help, its manual page and its completions.
package struct Command: Sendable {
    /// An argument that is not an option.
    package struct Operand: Sendable {
        let name: String
        let kind: ArgumentKind
        let help: String
        /// Whether its command can do without it.
        package let isOptional: Bool
        /// Whether more of the kind may follow; it is the last one then.
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

        static let database = Operand("DB", kind: .file, "The database file; a symbolic link is followed.")
        /// How it is written, such as `FILE...`.
        var usage: String { name + (isRepeatable ? "..." : "") }

        static let databases = Operand(
            "DB", kind: .file, "The database file, or with --recursive a folder; a symbolic link is followed.")
    }

    /// The word on the command line.
    package let name: String
    /// What it does, in one line.
    package let summary: String
    package let operands: [Operand]
    /// Its own options; `--json` and `--help` are added unless ``printsText``.
    package let options: [Option]
    /// What else its users should know, a paragraph each.
    let notes: [String]
    /// Command lines that show its use, without the name of the program.
    package let examples: [String]
    /// Whether what it prints is a text by itself, for which there is no JSON.
    let printsText: Bool
    /// Whether the exit status is its result, and what it prints only tells of it.
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
            title: "A database file",
            commands: [inspect, diagnose, encrypt, decrypt, rekey, verify, backup, restore, recover, query]),
        Group(
            title: "An app's database, by its configuration",
            commands: [plan, migrate, history, validate, baseline, repair]),
        Group(title: "Other", commands: [report, keygen, help, version, completions, manual]),
    ]

    package static let all: [Command] = groups.flatMap(\.commands)

    /// The command of a name.
    ///
    /// - Throws: ``CommandFailure`` that suggests another.
    static func named(_ word: String) throws -> Command {
        guard let command = all.first(where: { $0.name == word }) else {
            let suggestion = Suggestion.nearest(to: word, among: all.map(\.name))
            throw CommandFailure.usage(
                "unknown command \(word)", advice: suggestion.map { "is \($0) meant?" } ?? "see cipherstore --help")
        }
        return command
    }
}
