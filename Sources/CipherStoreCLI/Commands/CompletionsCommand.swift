extension Command {
    static let completions = Command(
        name: "completions",
        summary: "Print the completion script for a shell.",
        operands: [
            Operand("SHELL", kind: .words(CompletionsCommand.Shell.allCases.map(\.rawValue)), "The shell: bash or zsh.")
        ],
        notes: [
            "The completions are installed with cipherstore. To install them by hand for bash, save the output as "
                + "~/.local/share/bash-completion/completions/cipherstore, or append it to ~/.bashrc. For zsh, save it "
                + "as _cipherstore in a folder in your fpath."
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
                "completions are available only for \(Shell.allCases.map(\.rawValue).joined(separator: " and "))")
        }
        switch shell {
        case .bash: try Output.text(BashCompletions.script)
        case .zsh: try Output.text(ZshCompletions.script)
        }
        return .done
    }
}
