internal import CipherDatabaseConversion
internal import CipherKeyProviders
internal import CipherSchemaMigration
internal import CipherStore

extension Command {
    static let encrypt = Command(
        name: "encrypt",
        summary: "Encrypt a plaintext database in place.",
        operands: [.databases],
        options: KeyOptions.key.all + [
            EncryptCommand.keepBackup, EncryptCommand.onDamage, EncryptCommand.shadow, EncryptCommand.configuration,
            EncryptCommand.proof,
            CipherOptions.newCompatibility, CipherOptions.plaintextHeader,
        ]
            + UpgradeOptions.all + FleetOptions.all,
        notes: [
            "An encrypted copy is built beside the file, compared with it record by record, and replaces it in a "
                + "single rename. At every moment the file is either the complete plaintext database or the complete "
                + "encrypted one; after a crash, run the command again.",
            "A file that is already encrypted with this key is left unchanged, with exit status 0.",
            "With --shadow the copy is built and compared, and then removed: a rehearsal that shows whether the "
                + "upgrade would succeed, how long it would take and how large the file would become. Other processes "
                + "may have the database open in the meantime; if one of them writes to it, the exit status is 75. "
                + "With --config, the copy is also migrated, as migrate would do.",
            "With --on-damage recover, a file that cannot be repaired from its rows is kept as DB-damaged, still "
                + "plaintext, and is replaced by a database with everything that recover finds in it; the report lists "
                + "what is lost.",
            "The comparison authenticates every page of the copy. With --proof engine, SQLCipher itself reads every "
                + "page instead of only some of them, which takes longer.",
            FleetOptions.note,
        ],
        examples: [
            "encrypt app.db --key-file key",
            "encrypt app.db --key-env APP_KEY --keep-backup",
            "encrypt app.db --key-file key --on-damage recover",
            "encrypt app.db --key-file key --shadow --json",
            "encrypt app.db --key-file key --shadow --config app.plist",
            "encrypt app.db --key-file key --proof engine",
            "encrypt app.db --key-file key-with-salt --plaintext-header 32",
            "encrypt tenants --recursive --key-file 'keys/{name}.key'",
        ],
        isToldByStatus: true,
        run: EncryptCommand.run)
}

enum EncryptCommand {
    static let keepBackup = Option(
        "keep-backup",
        "Keep the plaintext file beside the encrypted one, as DB-plaintext (or DB-plaintext-2 and so on).")

    static let onDamage = Option(
        "on-damage", value: "WHAT", kind: .words(OnDamage.allCases.map(\.rawValue)),
        "What to do with a damaged file: rebuildIndexes (the default) repairs it if no row depends on the damage, "
            + "recover also saves what a file with any other damage still contains, and refuse changes nothing. If "
            + "an index refers to missing rows, rebuildIndexes keeps the plaintext original as DB-plaintext.")

    static let shadow = Option(
        "shadow", "Build and prove the encrypted copy, discard it, and leave the database as it is.")

    static let configuration = Option(
        "config", value: "FILE", kind: .file, "With --shadow: the configuration for migrating the copy.")

    static let proof = Option(
        "proof", value: "HOW", kind: .words(ProofReader.allCases.map(\.rawValue)),
        "How to compare: records (the default), or engine, which uses SQL and has the engine read every page.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let provider = try KeyOptions.key.requiredProvider(invocation)
        try KeyOptions.key.confirm(invocation)
        let settings = try CipherOptions.newSettings(invocation)
        let proof = try invocation.choice(Self.proof, default: ProofReader.records)
        guard !invocation.has(shadow) || !invocation.has(keepBackup) else {
            throw CommandFailure.usage("--shadow and --keep-backup cannot be used together")
        }
        let damage = try invocation.choice(onDamage, default: OnDamage.rebuildIndexes)
        if invocation.has(configuration) { return try rehearse(invocation, provider, proof) }
        let encrypt = { @Sendable (paths: DatabasePaths, options: ConversionOptions) in
            var options = options
            options.format = settings
            options.keepBackup = invocation.has(keepBackup)
            options.proof = proof
            options.onDamage = damage
            let upgrade = EncryptionUpgrade(at: paths, provider: provider, options: options)
            return try invocation.has(shadow) ? upgrade.shadow() : upgrade.run()
        }
        let path = invocation.operands[0]
        if try FleetOptions.isFleet(invocation) {
            return try Fleet(invocation, in: path, .usual, verb: invocation.has(shadow) ? "proven" : "encrypted")
                .run { FleetResult(try encrypt($0, $1), path: $0.database) }
        }
        let report = try UpgradeOptions.run(invocation, isRehearsal: invocation.has(shadow)) {
            try encrypt(DatabasePaths(path), $0)
        }
        return try ConversionFacts.print(report, invocation)
    }

    /// Rehearses the whole flow of a configuration on a copy.
    private static func rehearse(
        _ invocation: Invocation, _ provider: any KeyProvider, _ proof: ProofReader
    ) throws -> ExitStatus {
        guard invocation.has(shadow) else {
            throw CommandFailure.usage(
                "--config needs --shadow", advice: "to encrypt a file and migrate it, use cipherstore migrate")
        }
        let formats = [CipherOptions.newCompatibility, CipherOptions.plaintextHeader, onDamage]
        guard try !FleetOptions.isFleet(invocation), !formats.contains(where: invocation.has) else {
            throw CommandFailure.usage(
                "--config takes neither --recursive nor \(formats.map { "--\($0.name)" }.joined(separator: " nor "))")
        }
        let configuration = try ConfigurationOptions.read(invocation)
        let (report, schema) = try UpgradeOptions.run(invocation, isRehearsal: true) { options in
            var options = options
            options.proof = proof
            return try StoreOpening(
                configuration: configuration, at: DatabasePaths(invocation.operands[0]), provider: provider,
                options: options
            ).shadow()
        }
        guard !invocation.has(.json) else {
            try Output.json(RehearsalReport(report: report, schema: schema))
            return .done
        }
        let status = try ConversionFacts.print(report, invocation)
        if let schema { try SchemaText.print(schema) }
        return status
    }

    /// The report with one more key.
    private struct RehearsalReport: Encodable {
        let report: EncryptionReport
        let schema: Plan?

        private enum CodingKeys: String, CodingKey { case schema }

        func encode(to encoder: any Encoder) throws {
            try report.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(schema, forKey: .schema)
        }
    }
}
