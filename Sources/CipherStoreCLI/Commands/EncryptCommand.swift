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
            "An encrypted copy is built next to the database and compared with it record by record. Then the copy "
                + "replaces the database in a single rename. At all times, the file is either the complete "
                + "plaintext database or the complete encrypted one. After a crash, run the command again.",
            "A file that is already encrypted with this key is left unchanged, and the exit status is 0.",
            "With --shadow, the copy is built, compared and then removed. This rehearsal shows whether the encryption "
                + "would succeed, how long it would take, and how large the file would become. Other processes may "
                + "have the database open during the rehearsal. If one of them writes to it, the exit status is 75. "
                + "With --config, the command also migrates the copy, as cipherstore migrate would.",
            "With --on-damage recover, a file with damage outside its indexes is replaced by a database that "
                + "contains everything that can be recovered. The report lists what is lost. The damaged file is kept "
                + "as DB-damaged, which is still plaintext.",
            "The comparison authenticates every page of the copy. By default, SQLCipher itself reads only some of the "
                + "pages. With --proof engine, SQLCipher reads all of them, which takes longer.",
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
        "Keep the plaintext original as DB-plaintext, or as DB-plaintext-2 and so on if that name is taken.")

    static let onDamage = Option(
        "on-damage", value: "WHAT", kind: .words(OnDamage.allCases.map(\.rawValue)),
        "What to do if the file is damaged. rebuildIndexes (the default) rebuilds damaged indexes if the damage does "
            + "not affect any rows. If an index refers to missing rows, or a page with rows belongs to no table, the "
            + "plaintext original is also kept as DB-plaintext. recover does what rebuildIndexes does and, if there is "
            + "other damage, also recovers the rows that the file still contains. refuse leaves the file unchanged.")

    static let shadow = Option(
        "shadow", "Build and compare the encrypted copy, then remove it and leave the database unchanged.")

    static let configuration = Option(
        "config", value: "FILE", kind: .file, "With --shadow: also migrate the copy as this configuration specifies.")

    static let proof = Option(
        "proof", value: "HOW", kind: .words(ProofReader.allCases.map(\.rawValue)),
        "How to compare the copy with the database: records (the default), or engine, which compares with SQL and "
            + "therefore makes SQLCipher read every page.")

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
            return try Fleet.run(
                invocation, in: path, .usual, verb: invocation.has(shadow) ? "proven" : "encrypted"
            ) { FleetResult(try encrypt($0, $1), path: $0.database) }
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
                "--config requires --shadow", advice: "to encrypt and migrate a file, use cipherstore migrate")
        }
        let formats = [CipherOptions.newCompatibility, CipherOptions.plaintextHeader, onDamage]
        guard try !FleetOptions.isFleet(invocation), !formats.contains(where: invocation.has) else {
            throw CommandFailure.usage(
                "--config cannot be used with these options: --recursive, "
                    + "\(formats.map { "--\($0.name)" }.joined(separator: ", "))")
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
