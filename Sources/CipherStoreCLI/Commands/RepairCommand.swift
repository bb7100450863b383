internal import CipherStore

extension Command {
    static let repair = Command(
        name: "repair",
        summary: "Accept schema drift by recording the current schema.",
        options: ConfigurationOptions.all + KeyOptions.key.all + HistoryChangeText.options,
        notes: [
            "repair accepts the differences that `cipherstore validate` lists, records them in the history, and clears "
                + "backfill failures. It does not change any tables."
        ],
        examples: ["repair --config app.plist --directory . --key-file key"],
        isToldByStatus: true,
        run: RepairCommand.run)
}

enum RepairCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        try HistoryChangeText.print(try HistoryChangeText.opening(invocation).repair(), invocation)
    }
}
