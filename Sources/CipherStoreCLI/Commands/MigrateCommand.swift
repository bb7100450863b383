import CipherStore

extension Command {
    static let migrate = Command(
        name: "migrate",
        summary: "Open as an app would: encrypt a legacy file, then migrate it.",
        options: StoreOptions.all + KeyOptions.key.all + UpgradeOptions.all,
        notes: [
            "What is done depends on what is found: nothing (a new database is made), a legacy plaintext file of any "
                + "older version, or an encrypted one. `cipherstore plan` tells beforehand."
        ],
        examples: ["migrate --config app.plist --directory . --key-file key"],
        run: MigrateCommand.run)
}

enum MigrateCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try StoreOptions.provider(invocation)
        let opened = try UpgradeOptions.run(invocation) { options in
            try StoreOptions.opening(invocation, provider: provider, options: options).run()
        }
        for warning in opened.report.warnings { Output.complain("warning: \(warning)") }
        if invocation.has(.json) {
            try Output.json(opened.report)
        } else {
            try print(opened)
        }
        return .done
    }

    private static func print(_ opened: StoreOpening.Opened) throws {
        let report = opened.report
        var sheet = FactSheet()
        switch report.outcome {
        case .created: sheet.add("created", opened.path)
        case .encrypted, .decrypted:
            if let encryption = report.encryption { ConversionFacts.add(encryption, to: &sheet) }
        case .opened: sheet.add("opened", "\(opened.path) (encrypted before)")
        case .openedPlaintext: sheet.add("opened", "\(opened.path) (plaintext)")
        }
        let migration = report.migration
        let from = migration.from.map { "\($0) -> " } ?? ""
        let event = migration.event.map { " (\($0.rawValue))" } ?? ", nothing to do"
        sheet.add("schema", "version \(from)\(migration.to)\(event)")
        try sheet.print()
        try SchemaText.print(migration.applied)
        try SchemaText.print(withheld: migration.withheld, findings: migration.findings, notes: migration.notes)
    }
}
