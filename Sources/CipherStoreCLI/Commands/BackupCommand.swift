internal import CipherDatabaseConversion

extension Command {
    static let backup = Command(
        name: "backup",
        summary: "Make a verified, encrypted copy of a database in use.",
        operands: [.database],
        options: [BackupCommand.output] + KeyOptions.key.all + KeyOptions.newKey.all
            + [CipherOptions.newCompatibility, CipherOptions.oldCompatibility, .busyTimeout, .progress],
        notes: [
            "The backup is a consistent snapshot of one commit and is compared with the database row by row. It "
                + "appears under its name in one step, only when it is complete, and never replaces a file. The "
                + "database does not change, and the backup is a single file.",
            "The backup has the database's key and format, or those of the --new-key options. A plaintext database has "
                + "no key, so its backup needs one.",
            "Other connections can write to a database in WAL mode in the meantime; in any other mode, writers wait "
                + "until the backup is complete.",
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
        "output", value: "FILE", kind: .file, isRequired: true, "The backup to create; the file must not exist.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let output = try invocation.required(output)
        let newKey = try KeyOptions.newKey.provider(invocation)
        let formats = try CipherOptions.oldFormats(invocation)
        guard newKey != nil || !invocation.has(CipherOptions.newCompatibility) else {
            throw CommandFailure.usage(
                "--\(CipherOptions.newCompatibility.name) only applies to a backup with its own key")
        }
        let settings = try CipherOptions.settings(invocation, oldest: 3)
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
