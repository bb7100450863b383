internal import CipherStore

extension Command {
    static let plan = Command(
        name: "plan",
        summary: "Print what migrate would do, as SQL, and change nothing.",
        options: ConfigurationOptions.all + KeyOptions.key.all + [PlanCommand.rehearsalLimit],
        notes: [
            "Each statement stands with its reason, its risk, and what the data says of it. The key is needed where the file "
                + "is encrypted already; of another file a key that is given is tried too, and none is made.",
            "The migration is rehearsed: it runs on the rows of the database while every change stays in memory. So what "
                + "migrate would refuse is refused here with the same exit status, and what a step does to the rows of "
                + "each table is counted. Free space, permissions and locks are not asked about.",
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
        case .create: "there is no database: an encrypted one would be made"
        case .createPlaintext: "there is no database: a plaintext one would be made, for encryption is off"
        case .encrypt: "a legacy plaintext file: it would be encrypted first"
        case .open: "encrypted, and the key fits"
        case .rekey: "encrypted: it would be given another key or cipher format first"
        case .decrypt: "encrypted, and decrypted first, for encryption is off"
        case .openPlaintext: "plaintext, and opened as it is"
        }
    }
}
