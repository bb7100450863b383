internal import CipherStore

extension Command {
    static let validate = Command(
        name: "validate",
        summary: "Compare the schema with the recorded schema (read-only).",
        options: ConfigurationOptions.all + KeyOptions.key.all,
        notes: [
            "validate lists the differences object by object and ignores formatting. The exit status is 65 if there "
                + "are differences. `cipherstore plan` shows whether a migration would correct them, and `cipherstore "
                + "repair` accepts them.",
            "A key is required if the file is encrypted.",
        ],
        examples: ["validate --config app.plist --directory . --key-file key"],
        run: ValidateCommand.run)
}

enum ValidateCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let found = try KeyOptions.key.reading(invocation) {
            try ConfigurationOptions.opening(invocation, provider: $0).validate()
        }
        if invocation.has(.json) { try Output.json(found) } else { try print(found) }
        guard !found.isValid else { return .done }
        let count = found.sentences.count
        Output.complain(
            "\(found.path): the schema differs from the recorded schema (\(count) difference\(count == 1 ? "" : "s"))")
        return .badData
    }

    private static func print(_ found: SchemaValidation) throws {
        if found.isValid { try Output.line("valid: \(found.path)") }
        for sentence in found.sentences { try Output.line(sentence) }
        for note in found.notes { try Output.line("note: \(note)") }
    }
}
