internal import CipherStore

extension Command {
    static let repair = Command(
        name: "repair",
        summary: "Record the current schema as intended, after drift.",
        options: ConfigurationOptions.all + KeyOptions.key.all + HistoryChangeText.options,
        notes: [
            "The differences that `cipherstore validate` lists are accepted and recorded in the history, and failures "
                + "of backfills are cleared. No table is changed."
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
