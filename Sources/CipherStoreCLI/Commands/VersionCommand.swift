extension Command {
    static let version = Command(
        name: "version",
        summary: "Print the versions of cipherstore and its engine.",
        examples: ["version"],
        printsText: true,
        run: { _ in
            try Output.text(HelpText.version)
            return .done
        })
}
