internal import CipherDatabaseConversion
internal import CipherSchemaMigration
internal import CipherStore

extension Command {
    static let migrate = Command(
        name: "migrate",
        summary: "Open a database as the app would: encrypt it, then migrate it.",
        operands: [Operand("DIR", kind: .directory, isOptional: true, "With --recursive: the folder to search.")],
        options: [ConfigurationOptions.configuration, MigrateCommand.directory]
            + KeyOptions.key.all + UpgradeOptions.all + FleetOptions.all,
        notes: [
            "If there is no database, migrate creates one. If the database is a plaintext file from an older version "
                + "of the app, migrate encrypts and migrates it. If the database is already encrypted, migrate opens "
                + "and migrates it. `cipherstore plan` shows the steps in advance.",
            "With --recursive, migrate opens each file that has the file name from the configuration. With --name, it "
                + "instead opens each file whose name matches the pattern. No files are created.",
            FleetOptions.note,
        ],
        examples: ["migrate --config app.plist --directory . --key-file key"],
        isToldByStatus: true,
        run: MigrateCommand.run)
}

enum MigrateCommand {
    static let directory = Option(
        "directory", value: "DIR", kind: .directory,
        "The folder that contains the database. The configuration specifies the file name. Required unless "
            + "--recursive is specified.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        if try FleetOptions.isFleet(invocation) { return try runFleet(invocation) }
        guard invocation.operands.isEmpty else {
            throw CommandFailure.usage(
                "the argument DIR requires --recursive",
                advice: "for a single database, specify only its folder, with --directory; the configuration "
                    + "specifies the file name")
        }
        _ = try invocation.required(directory)
        let provider = try ConfigurationOptions.provider(invocation)
        try KeyOptions.key.confirm(invocation)
        let opened = try UpgradeOptions.run(invocation) { options in
            try ConfigurationOptions.opening(invocation, provider: provider, options: options).run()
        }
        for warning in opened.report.warnings { Output.complain("warning: \(warning)") }
        if invocation.has(.json) {
            try Output.json(opened.report)
        } else {
            try print(opened)
        }
        return .done
    }

    private static func runFleet(_ invocation: Invocation) throws -> ExitStatus {
        guard let folder = invocation.operands.first, !invocation.has(directory) else {
            throw CommandFailure.usage("with --recursive, pass the folder as the argument DIR instead of --directory")
        }
        let provider = try ConfigurationOptions.provider(invocation)
        var configuration = try ConfigurationOptions.read(invocation)
        // Without these options, each folder has one database, with the name from the configuration.
        configuration.sharesFolder = invocation.has(FleetOptions.name) || invocation.has(FleetOptions.filesFrom)
        return try Fleet.run(invocation, in: folder, .equal(configuration.databaseName), verb: "migrated") {
            [configuration] paths, options in
            let opened = try StoreOpening(
                configuration: configuration, at: paths, provider: provider, options: options
            ).run()
            return FleetResult(opened.report, path: paths.database)
        }
    }

    private static func print(_ opened: StoreOpening.Opened) throws {
        let report = opened.report
        var sheet = FactSheet()
        switch report.outcome {
        case .created: sheet.add("created", opened.path)
        case .encrypted, .decrypted, .rekeyed, .recovered:
            if let encryption = report.encryption { ConversionFacts.add(encryption, to: &sheet) }
        case .opened: sheet.add("opened", "\(opened.path) (already encrypted)")
        case .openedPlaintext: sheet.add("opened", "\(opened.path) (plaintext)")
        }
        let migration = report.migration
        let from = migration.from.map { "\($0) -> " } ?? ""
        let event = migration.event.map { " (\($0.rawValue))" } ?? ", nothing to do"
        sheet.add("schema", "version \(from)\(migration.to)\(event)")
        try sheet.print()
        if let recovery = report.encryption?.recovery { try RecoverCommand.print(recovery) }
        try SchemaText.print(migration.applied)
        try SchemaText.print(withheld: migration.withheld, findings: migration.findings, notes: migration.notes)
    }
}
