internal import CipherDatabaseConversion

extension Command {
    static let restore = Command(
        name: "restore",
        summary: "Replace a database with a backup, after verifying the backup.",
        operands: [Operand("FILE", kind: .file, "The backup. If it is a symbolic link, its target is used.")],
        options: [RestoreCommand.database] + KeyOptions.key.all + KeyOptions.backupKey.all + [RestoreCommand.plaintext]
            + [CipherOptions.newCompatibility, CipherOptions.oldCompatibility] + UpgradeOptions.all,
        notes: [
            "Before anything is changed, every page and the structure of the backup are checked. The backup is never "
                + "written to. A copy of the backup is built next to the database and compared with the backup row by "
                + "row. Then the copy replaces the database in a single rename. At all times, the file is either "
                + "the complete old database or the complete new one. After a crash, run the command again.",
            "The key options specify the key of the database. The database keeps this key and its format. "
                + "If there is no database yet, restore creates one with this key. The backup must have the same "
                + "key, unless one of the --backup-key options specifies another, or --plaintext-backup is given.",
            "restore does not replace a database that the key does not open. To replace such a database, move it to "
                + "another folder together with its -wal and -journal, and run the command again.",
        ],
        examples: [
            "restore app-2026-11.db --into app.db --key-file key",
            "restore usb.db --into app.db --key-file key --backup-key-env KEY",
        ],
        isToldByStatus: true,
        run: RestoreCommand.run)
}

enum RestoreCommand {
    static let database = Option(
        "into", value: "DB", kind: .file, isRequired: true, "The database to replace or create.")

    static let plaintext = Option(
        "plaintext-backup", "Accept a backup that is not encrypted. Nothing shows who wrote its rows.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let database = try invocation.required(database)
        let provider = try KeyOptions.key.requiredProvider(invocation)
        let backupProvider = try KeyOptions.backupKey.provider(invocation)
        let formats = try CipherOptions.oldFormats(invocation)
        let settings = try CipherOptions.settings(invocation, among: CipherFormat.written)
        let report = try UpgradeOptions.run(invocation) { options in
            var options = options
            options.format = settings
            return try DatabaseRestore(
                of: invocation.operands[0], backupProvider: backupProvider, to: DatabasePaths(database),
                provider: provider, formats: formats, backupFormats: formats,
                allowsPlaintext: invocation.has(plaintext), options: options
            ).run()
        }
        return try ConversionFacts.print(report, invocation)
    }
}
