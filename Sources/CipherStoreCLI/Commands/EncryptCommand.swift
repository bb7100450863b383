import CipherSQLite
import CipherStore

extension Command {
    static let encrypt = Command(
        name: "encrypt",
        summary: "Encrypt a plaintext database in place.",
        operands: [.database],
        options: KeyOptions.key.all + [EncryptCommand.keepBackup, CipherOptions.newCompatibility] + UpgradeOptions.all,
        notes: [
            "An encrypted copy is built beside the file, compared with it row by row, and takes its place by one rename. "
                + "At every moment the file is the whole plaintext database or the whole encrypted one; after a crash, "
                + "run the command again.",
            "A file that is encrypted with this key already is left as it is, with exit status 0.",
        ],
        examples: [
            "encrypt app.db --key-file key",
            "encrypt app.db --key-env APP_KEY --keep-backup",
        ],
        run: EncryptCommand.run)
}

enum EncryptCommand {
    static let keepBackup = Option(
        "keep-backup", "Keep the plaintext file beside the encrypted one, as DB-plaintext.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try KeyOptions.key.requiredProvider(invocation)
        let settings = try CipherOptions.settings(invocation, oldest: 3)
        let report = try UpgradeOptions.run(invocation) { options in
            var options = options
            options.settings = settings
            options.keepBackup = invocation.has(keepBackup)
            return try EncryptionUpgrade(path: invocation.operands[0], provider: provider, options: options).run()
        }
        return try ConversionFacts.print(report, invocation)
    }
}
