internal import CipherDatabaseConversion

extension Command {
    static let decrypt = Command(
        name: "decrypt",
        summary: "Decrypt an encrypted database in place.",
        operands: [.database],
        options: KeyOptions.key.all + [CipherOptions.compatibility, CipherOptions.detect] + UpgradeOptions.all,
        notes: [
            "A plaintext copy is built next to the database and compared with it row by row. Then the copy replaces "
                + "the database in a single rename. At all times, the file is either the complete encrypted "
                + "database or the complete plaintext one. After a crash, run the command again.",
            "A file that is already plaintext is left unchanged, and the exit status is 0.",
        ],
        examples: ["decrypt app.db --key-file key"],
        isToldByStatus: true,
        run: DecryptCommand.run)
}

enum DecryptCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try KeyOptions.key.requiredProvider(invocation)
        let formats = try CipherOptions.formats(invocation)
        let report = try UpgradeOptions.run(invocation) { options in
            try Decryption(path: invocation.operands[0], provider: provider, formats: formats, options: options).run()
        }
        return try ConversionFacts.print(report, invocation)
    }
}
