internal import CipherStore

extension Command {
    static let plan = Command(
        name: "plan",
        summary: "Print the SQL that migrate would run, without changing anything.",
        options: ConfigurationOptions.all + KeyOptions.key.all + [PlanCommand.rehearsalLimit],
        notes: [
            "Each statement is printed with its reason, its risk and its effect on the data. A key is required if the "
                + "file is encrypted. Otherwise, a key is optional, and plan checks the key if one is specified. plan "
                + "never creates a key.",
            "plan rehearses the migration on the rows of the database and keeps every change in memory. "
                + "Therefore, plan refuses what migrate would refuse, with the same exit status. It also counts "
                + "the rows that each step changes in each table. Free space, permissions and locks are not checked.",
        ],
        examples: [
            "plan --config app.plist --directory .",
            "plan --config app.plist --directory . --key-file key",
        ],
        run: PlanCommand.run)
}

enum PlanCommand {
    static let rehearsalLimit = Option(
        "rehearsal-limit", value: "MIB",
        "The maximum size of the changes that the rehearsal keeps in memory (default: 256 MiB). With 0, there is no "
            + "rehearsal.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let limit = try invocation.mebibytes(rehearsalLimit, default: 256)
        let plan = try KeyOptions.key.reading(invocation) {
            try ConfigurationOptions.opening(invocation, provider: $0).plan(rehearsalLimit: limit, isAlone: true)
        }
        guard !invocation.has(.json) else {
            try Output.json(plan)
            return .done
        }
        try Output.line("-- \(plan.path): \(sentence(plan.step))")
        try SchemaText.print(plan.schema)
        return .done
    }

    private static func sentence(_ step: StorePlan.Step) -> String {
        switch step {
        case .create: "there is no database at this path; an encrypted one would be created"
        case .createPlaintext:
            "there is no database at this path; a plaintext one would be created, because encryption is off"
        case .encrypt: "this is a legacy plaintext file; it would be encrypted first"
        case .open: "the file is encrypted, and the key opens it"
        case .rekey: "the file is encrypted; its key or cipher format would be changed first"
        case .decrypt: "the file is encrypted; it would be decrypted first, because encryption is off"
        case .openPlaintext: "the file is plaintext; it would be opened unchanged"
        }
    }
}
