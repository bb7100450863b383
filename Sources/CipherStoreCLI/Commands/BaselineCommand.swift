internal import CipherHistory
internal import CipherStore

extension Command {
    static let baseline = Command(
        name: "baseline",
        summary: "Record an existing schema as the schema of a version.",
        options: ConfigurationOptions.all + [BaselineCommand.version] + KeyOptions.key.all + HistoryChangeText.options,
        notes: [
            "Use this for a database that already has its schema, but whose version CipherStore has not recorded. The "
                + "version and the current schema are recorded; later migrations start from there."
        ],
        examples: ["baseline --config app.plist --directory . --key-file key --at 24"],
        isToldByStatus: true,
        run: BaselineCommand.run)
}

enum BaselineCommand {
    static let version = Option(
        "at", value: "VERSION", "The version (the configuration's own by default): a number, or numbers with dots.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let declared = try invocation[version].map { text in
            guard let version = SchemaVersion(text) else {
                throw CommandFailure.usage("--\(Self.version.name) takes a version such as 24 or 1.10.0")
            }
            return version
        }
        return try HistoryChangeText.print(try HistoryChangeText.opening(invocation).baseline(at: declared), invocation)
    }
}
