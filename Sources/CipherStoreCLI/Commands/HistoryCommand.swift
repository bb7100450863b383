internal import CipherHistory
internal import CipherStore

extension Command {
    static let history = Command(
        name: "history",
        summary: "List what was done to the database and what is pending.",
        options: ConfigurationOptions.all + KeyOptions.key.all,
        notes: [
            "Each item has a state: applied; pending (in the configuration, but not yet applied to the database); "
                + "missing (the database has reached the item's version, but the item was removed from the "
                + "configuration or was never applied); future (applied, but its version is later than the "
                + "configuration's); or failed (a backfill that ended with an error). A migration that fails is rolled "
                + "back and is not listed.",
            "A key is required if the file is encrypted.",
        ],
        examples: ["history --config app.plist --directory . --key-file key"],
        run: HistoryCommand.run)
}

enum HistoryCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let history = try KeyOptions.key.reading(invocation) {
            try ConfigurationOptions.opening(invocation, provider: $0).history()
        }
        if invocation.has(.json) { try Output.json(history) } else { try print(history) }
        return .done
    }

    private static func print(_ history: StoreHistory) throws {
        try Output.line("\(history.path): \(history.version.map { "version \($0)" } ?? "no version is recorded")")
        let lines = history.items.map { item in
            [
                item.state.rawValue, item.kind.rawValue, item.version?.description ?? "", item.date ?? "",
                [item.name, item.detail].compactMap { $0 }.joined(separator: ": "),
            ]
        }
        let widths = (0..<5).map { column in lines.map { $0[column].count }.max() ?? 0 }
        for line in lines {
            let columns = zip(line, widths).prefix(4).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            try Output.line((columns + [line[4]]).joined(separator: "  "))
        }
    }
}
