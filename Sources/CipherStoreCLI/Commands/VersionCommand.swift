extension Command {
    static let version = Command(
        name: "version",
        summary: "Print the version, with that of the engine.",
        examples: ["version"],
        printsText: true,
        run: { _ in
            try Output.text(HelpText.version)
            return .done
        })
}
