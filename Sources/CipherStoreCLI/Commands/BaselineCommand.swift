internal import CipherHistory
internal import CipherStore

extension Command {
    static let baseline = Command(
        name: "baseline",
        summary: "Record the current schema as the schema of a version.",
        options: ConfigurationOptions.all + [BaselineCommand.version] + KeyOptions.key.all + HistoryChangeText.options,
        notes: [
            "Use this command if a database has a schema whose version CipherStore has not recorded. The command "
                + "records a version and the current schema. Later migrations start from this version."
        ],
        examples: ["baseline --config app.plist --directory . --key-file key --at 24"],
        isToldByStatus: true,
        run: BaselineCommand.run)
}

enum BaselineCommand {
    static let version = Option(
        "at", value: "VERSION", "The version to record, such as 24 or 1.10.0 (default: the configuration's version).")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let declared = try invocation[version].map { text in
            guard let version = SchemaVersion(text) else {
                throw CommandFailure.usage("--\(Self.version.name) must be a version such as 24 or 1.10.0")
            }
            return version
        }
        return try HistoryChangeText.print(try HistoryChangeText.opening(invocation).baseline(at: declared), invocation)
    }
}
