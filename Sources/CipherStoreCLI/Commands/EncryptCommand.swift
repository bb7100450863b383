import CipherSQLite
import CipherStore

extension Command {
    static let encrypt = Command(
        name: "encrypt",
        summary: "Encrypt a plaintext database in place.",
        operands: [.database],
        options: KeyOptions.all + [EncryptCommand.keepBackup, CipherOptions.compatibility] + UpgradeOptions.all,
        notes: [
            "An encrypted copy is built beside the file, compared with it row by row, and takes its place by one rename. "
                + "At every moment the file is the whole plaintext database or the whole encrypted one; after a crash, "
                + "run the command again.",
            "A file that is encrypted with this key already is left as it is, with exit status 0.",
        ],
        run: EncryptCommand.run)
}

enum EncryptCommand {
    static let keepBackup = Option(
        "keep-backup", "Keep the plaintext file beside the encrypted one, as DB-plaintext.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try KeyOptions.requiredProvider(invocation)
        let settings = try CipherOptions.settings(invocation, oldest: 3)
        let report = try UpgradeOptions.run(invocation) { options in
            var options = options
            options.settings = settings
            options.keepBackup = invocation.has(keepBackup)
            return try EncryptionUpgrade(path: invocation.operands[0], provider: provider, options: options).run()
        }
        for warning in report.warnings { Output.complain("warning: \(warning)") }
        guard !invocation.has(.json) else {
            try Output.json(report)
            return .done
        }
        var sheet = FactSheet()
        EncryptionFacts.add(report, to: &sheet)
        try sheet.print()
        return .done
    }
}

/// What people read of an encryption upgrade.
enum EncryptionFacts {
    static func add(_ report: EncryptionReport, to sheet: inout FactSheet) {
        switch report.outcome {
        case .encrypted: break
        case .alreadyEncrypted:
            sheet.add("encrypted", "\(report.path): it was encrypted with this key before")
            return
        case .created:
            sheet.add("created", "\(report.path): the file was empty, and is an empty encrypted database now")
            return
        }
        sheet.add("encrypted", report.path)
        let authenticated = Engine.current.hasCipherIntegrityCheck ? "every page" : "every page in use"
        sheet.add(
            "proof",
            "\(counted(report.tables, "table")), \(counted(report.rows, "row")) compared, every value, rowid and index "
                + "entry equal; \(authenticated) authenticated")
        sheet.add(
            "size",
            "\(TerminalText.grouped(report.bytesBefore)) bytes before, \(TerminalText.grouped(report.bytesAfter)) after"
        )
        var time = "\(TerminalText.decimal(report.seconds, 2)) s"
        if report.seconds > 0 {
            time += " (\(TerminalText.decimal(Double(report.bytesBefore) / 1e6 / report.seconds, 0)) MB/s)"
        }
        sheet.add("time", time)
        sheet.add("engine", "SQLCipher \(report.cipherVersion)")
        sheet.add("backup", report.backup.map { "\($0): plaintext, delete it when it is no longer needed" })
    }

    private static func counted(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(TerminalText.grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }
}
