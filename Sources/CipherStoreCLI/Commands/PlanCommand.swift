internal import CipherStore

extension Command {
    static let plan = Command(
        name: "plan",
        summary: "Print what migrate would do, as SQL, without doing it.",
        options: ConfigurationOptions.all + KeyOptions.key.all + [PlanCommand.rehearsalLimit],
        notes: [
            "Each statement is printed with its reason, its risk and its effect on the data. A key is needed if the "
                + "file is already encrypted; for any other file, a given key is also tried, and no key is created.",
            "The migration is rehearsed: it runs on the rows of the database, and keeps every change in memory. "
                + "Therefore, plan refuses what migrate would refuse, with the same exit status, and counts what each "
                + "step does to the rows of each table. Free space, permissions and locks are not checked.",
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
        "How much the rehearsal may change in memory (256 MiB by default); 0 turns the rehearsal off.")

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
        case .create: "no database at this path: an encrypted one would be created"
        case .createPlaintext: "no database at this path: a plaintext one would be created, because encryption is off"
        case .encrypt: "a legacy plaintext file: it would be encrypted first"
        case .open: "encrypted, and the key fits"
        case .rekey: "encrypted: its key or cipher format would be changed first"
        case .decrypt: "encrypted: it would be decrypted first, because encryption is off"
        case .openPlaintext: "plaintext: it would be opened as it is"
        }
    }
}
