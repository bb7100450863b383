extension Command {
    static let manual = Command(
        name: "manual",
        summary: "Print the manual page in man(1) format.",
        notes: ["After installation, `man cipherstore` shows this page."],
        examples: ["manual | man -l -"],
        printsText: true,
        run: ManualCommand.run)
}

enum ManualCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        try Output.text(ManualPage.text)
        return .done
    }
}
