internal import CipherStore

extension Command {
    static let plan = Command(
        name: "plan",
        summary: "Print what migrate would do, as SQL, without doing it.",
        options: ConfigurationOptions.all + KeyOptions.key.all + [PlanCommand.rehearsalLimit],
        notes: [
            "Each statement has its reason, its risk, and its effect on the data. The key is needed if the file "
                + "is encrypted already; for another file a given key is tried too, and none is created.",
            "The migration is rehearsed: it runs on the rows of the database with every change in memory. So what "
                + "migrate would refuse is refused here with the same exit status, and what a step does to the rows of "
                + "each table is counted. Free space, permissions and locks are not checked.",
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
        "How much the rehearsal may change in memory (256 MiB by default); with 0 there is none.")

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
        case .create: "there is no database: an encrypted one would be created"
        case .createPlaintext: "there is no database: a plaintext one would be created, because encryption is off"
        case .encrypt: "a legacy plaintext file: it would be encrypted first"
        case .open: "encrypted, and the key fits"
        case .rekey: "encrypted: it would be given another key or cipher format first"
        case .decrypt: "encrypted: it would be decrypted first, because encryption is off"
        case .openPlaintext: "plaintext: it would be opened as it is"
        }
    }
}
