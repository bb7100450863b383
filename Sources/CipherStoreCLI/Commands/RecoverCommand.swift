internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherStore

extension Command {
    static let recover = Command(
        name: "recover",
        summary: "Create a new, encrypted database from a damaged one.",
        operands: [.database],
        options: [RecoverCommand.output, RecoverCommand.inPlace, RecoverCommand.template, RecoverCommand.configuration]
            + KeyOptions.key.all + KeyOptions.newKey.all
            + [CipherOptions.newCompatibility, CipherOptions.plaintextHeader, CipherOptions.oldCompatibility]
            + UpgradeOptions.all,
        notes: [
            "The damaged database may be plaintext or encrypted. It is read page by page, together with its -wal or "
                + "-journal, and is never written to. Each complete row is restored to its table with its rowid, even "
                + "if the pages that point to it are lost. Indexes and full-text indexes are rebuilt. Every "
                + "recovered row is compared with the result of a second reading of the damaged database.",
            "Other rows are put into the table lost_and_found (with --in-place: cipherstore_lost_and_found), each with "
                + "a reason: orphaned (the row cannot be assigned to one table, or may be deleted or an old version), "
                + "deleted (it is on a free page) or damaged (it contradicts the rest of its page). If the schema is "
                + "lost, recover uses the schema of --template or, with --config, the app's schema for a first install.",
            "With --output, the new database is a separate file. With --in-place, the new database replaces the "
                + "damaged one in a single rename. The damaged one is kept as DB-damaged (or DB-damaged-2 and so on), "
                + "with its -wal or -journal; if it is plaintext, it stays plaintext. At all times, DB is either the "
                + "complete damaged database or the complete recovered one. After a crash, `cipherstore verify` shows "
                + "which of the two it is. No other program may have the database open. If nothing is damaged, "
                + "--in-place leaves the file unchanged, and \"wasSound\" is true in the --json report.",
            "The exit status is 0 if the new database was created, even if rows are lost. With --json, \"complete\" is "
                + "false if rows may be missing. In a plaintext file, a damaged value can look like a correct one, and "
                + "recover cannot detect this.",
            "The cipher format of the damaged database is found from its authenticated pages. A database without "
                + "HMACs, as in format 1, is recovered only if --old-cipher-compatibility names its format. The new "
                + "database has the same format, or the format of --config, --cipher-compatibility or "
                + "--plaintext-header.",
            "The key is used to open the damaged database (if it is encrypted) and to encrypt the new one. With "
                + "--output, one of the --new-key options can specify a different key for the new database.",
        ],
        examples: [
            "recover app.db --output new.db --key-file key",
            "recover app.db --output new.db --key-file key --template good.db",
            "recover app.db --in-place --key-file key",
            "recover app.db --output new.db --key-file key --config app.plist",
        ],
        isToldByStatus: true,
        run: RecoverCommand.run)
}

enum RecoverCommand {
    static let output = Option(
        "output", value: "NEW", kind: .file, "The database to create. The file must not exist.")
    static let inPlace = Option(
        "in-place", "Replace the damaged database with the new one, and keep the damaged one as DB-damaged.")
    static let template = Option(
        "template", value: "HEALTHY", kind: .file,
        "An undamaged database with the same schema. It must be plaintext or have the same key. Its schema is used if "
            + "the schema of the damaged database is lost or cannot be read."
    )

    static let configuration = Option(
        "config", value: "FILE", kind: .file,
        "The app's configuration. The new database has its cipher format, and its schema for a first install is used "
            + "if the schema of the damaged database is lost.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        guard invocation.has(output) != invocation.has(inPlace) else {
            throw CommandFailure.usage("either --output or --in-place is required")
        }
        guard !invocation.has(template) || !invocation.has(configuration) else {
            throw CommandFailure.usage("--template and --config cannot be used together", advice: "remove one of them")
        }
        let schema = try invocation[configuration].map { try Configuration(file: $0) }
        let provider = try KeyOptions.key.requiredProvider(invocation)
        let newProvider = try KeyOptions.newKey.provider(invocation)
        guard newProvider == nil || !invocation.has(inPlace) else {
            throw CommandFailure.usage(
                "--in-place cannot be used with the --new-key options",
                advice: "recover the database without a new key, then run cipherstore rekey"
            )
        }
        let isFormatNamed =
            invocation.has(CipherOptions.newCompatibility) || invocation.has(CipherOptions.plaintextHeader)
        let formats = try CipherOptions.oldFormats(invocation, besides: schema?.encryption.formats ?? [])
        let settings = try CipherOptions.newSettings(invocation)
        let report = try UpgradeOptions.run(invocation) { options in
            var options = options
            options.format = isFormatNamed ? settings : schema?.encryption.format ?? settings
            if let schema { options.extensions = schema.extensions }
            let makeSchema = schema.map { schema in
                { (connection: Connection) in try schema.makeSchema(in: connection) }
            }
            let paths = try DatabasePaths(invocation.operands[0])
            guard let output = invocation[output] else {
                var recovery = InPlaceRecovery(
                    of: paths, provider: provider, formats: formats, template: invocation[template], options: options)
                recovery.makeSchema = makeSchema
                recovery.keepsFormat = !isFormatNamed && schema == nil
                return try recovery.runLocked()
            }
            var recovery = try DatabaseRecovery(
                of: paths, provider: provider, formats: formats, to: output,
                targetProvider: newProvider, template: invocation[template], options: options)
            recovery.makeSchema = makeSchema
            recovery.keepsFormat = !isFormatNamed && schema == nil
            return try recovery.run()
        }
        guard !invocation.has(.json) else {
            try Output.json(report)
            return .done
        }
        try print(report)
        return .done
    }

    /// Prints a line for each table, and a sentence on what is lost.
    static func print(_ report: RecoveryReport) throws {
        guard !report.wasSound else {
            for note in report.notes { try Output.line(note) }
            return try Output.line("\(SystemPath.printable(report.path)) was not changed, because nothing is damaged")
        }
        var lines = [["table", "rows", "lost pages", "notes"]]
        for table in report.tables {
            lines.append([
                SystemPath.printable(table.name), TerminalText.grouped(table.rows), pages(table.lostPages),
                table.notes.map { SystemPath.printable($0) }.joined(separator: "; "),
            ])
        }
        if let apart = report.lostAndFound {
            let rows = apart.orphanedRows + apart.deletedRows + apart.damagedRows
            lines.append([
                apart.name, TerminalText.grouped(rows), "",
                "\(apart.orphanedRows) orphaned, \(apart.deletedRows) deleted, \(apart.damagedRows) damaged",
            ])
        }
        let widths = (0..<3).map { column in lines.map { TerminalText.width($0[column]) }.max() ?? 0 }
        for line in lines {
            let cells = zip(line, widths).map { $0 + String(repeating: " ", count: $1 - TerminalText.width($0)) }
            try Output.line((cells + [line[3]]).joined(separator: "  "))
        }
        for note in report.notes { try Output.line(note) }
        try Output.line(sentence(report))
    }

    private static func pages(_ numbers: [Int]) -> String {
        numbers.count > 8
            ? "\(numbers.prefix(7).map(String.init).joined(separator: " ")) and \(numbers.count - 7) more"
            : numbers.map(String.init).joined(separator: " ")
    }

    private static func sentence(_ report: RecoveryReport) -> String {
        let rows = "\(TerminalText.grouped(report.rows)) row\(report.rows == 1 ? "" : "s")"
        guard !report.complete else {
            return "\(report.path) contains \(rows). A second reading of the damaged database gave the same result. "
                + "Nothing is lost."
        }
        let lost = report.tables.filter { !$0.lostPages.isEmpty }.count
        var parts: [String] = []
        if lost > 0 { parts.append("\(lost) table\(lost == 1 ? " has" : "s have") pages that are lost or damaged") }
        if !report.lostPages.isEmpty {
            let count = report.lostPages.count
            parts.append("\(count) page\(count == 1 ? " of an unknown table is" : "s of unknown tables are") lost")
        }
        if let apart = report.lostAndFound, apart.orphanedRows + apart.damagedRows > 0 {
            let count = apart.orphanedRows + apart.damagedRows
            parts.append("\(count) row\(count == 1 ? " is" : "s are") found only in the table \(apart.name)")
        }
        let loss = parts.isEmpty ? "see the notes above" : parts.joined(separator: ", and ")
        return "\(report.path) contains \(rows). A second reading of the damaged database gave the same result. Rows "
            + "may be missing: \(loss)."
    }
}
