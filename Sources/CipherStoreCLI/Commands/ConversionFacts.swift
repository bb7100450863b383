internal import CipherDatabaseConversion

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
            sheet.add("recovered", "\(report.path), which was damaged")
            sheet.add("kept", report.recovery.map { "\($0.source): the damaged database" })
            return
        case .alreadyEncrypted:
            sheet.add("unchanged", "\(report.path) is already encrypted with this key")
            return
        case .created:
            sheet.add("created", "\(report.path): an empty encrypted database replaced the empty file")
            return
        case .alreadyPlaintext:
            sheet.add("unchanged", "\(report.path) is already plaintext")
            return
        case .alreadyRekeyed:
            sheet.add("unchanged", "\(report.path) already has the new key and cipher format")
            return
        }
        sheet.add(
            report.outcome == .backedUp ? "backup" : report.outcome.rawValue,
            report.outcome == .shadow ? "\(report.path) can be encrypted; it was not changed" : report.path)
        let authenticated = report.authentication.map { "; \($0.text(of: " of the new file"))" } ?? ""
        sheet.add(
            "proof",
            "compared \(counted(report.tables, "table")) and \(counted(report.rows, "row")): every value, rowid and "
                + "index entry matches\(authenticated)")
        if !report.rebuiltIndexes.isEmpty {
            sheet.add(
                "rebuilt", "\(report.rebuiltIndexes.joined(separator: ", ")) (damaged indexes, rebuilt from the rows)")
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
        sheet.add("backup", report.backup.map { "\($0): plaintext; delete it when you no longer need it" })
    }

    private static func counted(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(TerminalText.grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }
}

extension PageAuthentication {
    /// Which pages are authenticated, as a clause.
    func text(of file: String = "") -> String {
        switch self {
        case .everyPage: "every page\(file) is authenticated"
        case .everyPageInUse: "every page in use\(file) is authenticated"
        case .everyPageInUseExceptHeader:
            "every page in use\(file) is authenticated, except for the readable part of the header"
        case .none: "not authenticated, because cipher format 1 has no authentication"
        }
    }
}
