internal import CipherDatabaseConversion
internal import CipherSQLite

/// The printed report on an encryption upgrade, a decryption or a key change.
enum ConversionFacts {
    /// Prints the report as text or as JSON, as the options request.
    static func print(_ report: EncryptionReport, _ invocation: Invocation) throws -> ExitStatus {
        for warning in report.warnings { Output.complain("warning: \(warning)") }
        guard !invocation.has(.json) else {
            try Output.json(report)
            return .done
        }
        var sheet = FactSheet()
        add(report, to: &sheet)
        try sheet.print()
        if let recovery = report.recovery { try RecoverCommand.print(recovery) }
        return .done
    }

    static func add(_ report: EncryptionReport, to sheet: inout FactSheet) {
        switch report.outcome {
        case .encrypted, .decrypted, .rekeyed, .shadow, .backedUp, .restored, .vacuumed: break
        case .recovered:
            sheet.add("recovered", "\(report.path): it was damaged")
            sheet.add("kept", report.recovery.map { "the damaged database, as \($0.source)" })
            return
        case .alreadyEncrypted:
            sheet.add("unchanged", "\(report.path): it is already encrypted with this key")
            return
        case .created:
            sheet.add("created", "\(report.path): an empty encrypted database, in place of an empty file")
            return
        case .alreadyPlaintext:
            sheet.add("unchanged", "\(report.path): it is already plaintext")
            return
        case .alreadyRekeyed:
            sheet.add("unchanged", "\(report.path): it already has the new key and cipher format")
            return
        }
        sheet.add(
            report.outcome == .backedUp ? "backup" : report.outcome.rawValue,
            report.outcome == .shadow ? "\(report.path): it could be encrypted; nothing was changed" : report.path)
        let authenticated =
            report.outcome == .decrypted
            ? "" : "; \(Engine.current.hasCipherIntegrityCheck ? "every page" : "every page in use") authenticated"
        sheet.add(
            "proof",
            "\(counted(report.tables, "table")), \(counted(report.rows, "row")) compared, every value, rowid and index "
                + "entry matches\(authenticated)")
        if !report.rebuiltIndexes.isEmpty {
            sheet.add(
                "rebuilt", "damaged indexes, from the rows: \(report.rebuiltIndexes.joined(separator: ", "))")
        }
        sheet.add(
            "size",
            "\(TerminalText.size(report.bytesBefore)) before, \(TerminalText.size(report.bytesAfter)) after"
        )
        var time = "\(TerminalText.decimal(report.seconds, 2)) s"
        let speed = report.seconds > 0 ? Double(report.bytesBefore) / 1e6 / report.seconds : 0
        // For a small file, the speed means nothing.
        if speed >= 1 { time += " (\(TerminalText.decimal(speed, 0)) MB/s)" }
        sheet.add("time", time)
        sheet.add("engine", "SQLCipher \(report.cipherVersion)")
        sheet.add("backup", report.backup.map { "\($0): plaintext, delete it when it is no longer needed" })
    }

    private static func counted(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(TerminalText.grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }
}
