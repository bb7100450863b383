extension Command {
    static let help = Command(
        name: "help",
        summary: "Describe a command, or list all commands.",
        operands: [.init("COMMAND", kind: .text, isOptional: true, "The command to describe (default: all commands).")],
        examples: ["help encrypt"],
        printsText: true,
        run: HelpCommand.run)
}

enum HelpCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        try Output.text(invocation.operands.first.map { HelpText.command(try .named($0)) } ?? HelpText.overview)
        return .done
    }
}
