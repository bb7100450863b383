extension Command {
    static let completions = Command(
        name: "completions",
        summary: "Print the completions for a shell.",
        operands: [
            Operand("SHELL", kind: .words(CompletionsCommand.Shell.allCases.map(\.rawValue)), "The shell: bash or zsh.")
        ],
        notes: [
            "An installation has them already. By hand: let bash read them as a file of "
                + "~/.local/share/bash-completion/completions, named cipherstore, or in ~/.bashrc; zsh wants a file "
                + "named _cipherstore in a folder of its fpath."
        ],
        examples: ["completions zsh > _cipherstore"],
        printsText: true,
        run: CompletionsCommand.run)
}

enum CompletionsCommand {
    enum Shell: String, CaseIterable { case bash, zsh }

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        guard let shell = Shell(rawValue: invocation.operands[0]) else {
            throw CommandFailure.usage(
                "completions are made for \(Shell.allCases.map(\.rawValue).joined(separator: " and "))")
        }
        switch shell {
        case .bash: try Output.text(BashCompletions.script)
        case .zsh: try Output.text(ZshCompletions.script)
        }
        return .done
    }
}
