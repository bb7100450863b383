internal import CipherDatabaseConversion

extension Command {
    static let backup = Command(
        name: "backup",
        summary: "Create a verified, encrypted backup; the database may be in use.",
        operands: [.database],
        options: [BackupCommand.output] + KeyOptions.key.all + KeyOptions.newKey.all
            + [CipherOptions.newCompatibility, CipherOptions.oldCompatibility, .busyTimeout, .progress],
        notes: [
            "The backup is a single file that contains a consistent snapshot of the database. Every row of the backup "
                + "is compared with the database. The backup file appears only when it is complete, and never "
                + "replaces an existing file. The database is not changed.",
            "The backup has the same key and cipher format as the database. With one of the --new-key options, it has "
                + "the new key and the format that --cipher-compatibility specifies. A plaintext database has no key, "
                + "so its backup requires a new key.",
            "In WAL mode, other connections can write to the database during the backup. In any other journal mode, "
                + "writers must wait until the backup is complete.",
        ],
        examples: [
            "backup app.db --output app-2026-11.db --key-file key",
            "backup app.db --output usb.db --key-file key --new-key-env KEY",
        ],
        isToldByStatus: true,
        run: BackupCommand.run)
}

enum BackupCommand {
    static let output = Option(
        "output", value: "FILE", kind: .file, isRequired: true, "The backup to create. The file must not exist.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let output = try invocation.required(output)
        let newKey = try KeyOptions.newKey.provider(invocation)
        let formats = try CipherOptions.oldFormats(invocation)
        guard newKey != nil || !invocation.has(CipherOptions.newCompatibility) else {
            throw CommandFailure.usage(
                "--\(CipherOptions.newCompatibility.name) requires a new key for the backup",
                advice: "specify one of the --new-key options")
        }
        let settings = try CipherOptions.settings(invocation, among: CipherFormat.written)
        let report = try UpgradeOptions.run(invocation) { options in
            var options = options
            options.format = settings
            return try KeyOptions.key.reading(invocation) {
                try FileBackup(
                    of: DatabasePaths(invocation.operands[0]), provider: $0, formats: formats, to: output,
                    backupProvider: newKey, options: options
                ).run()
            }
        }
        return try ConversionFacts.print(report, invocation)
    }
}
