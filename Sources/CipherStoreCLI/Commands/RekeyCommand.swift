internal import CipherDatabaseConversion
internal import CipherSQLite

extension Command {
    static let rekey = Command(
        name: "rekey",
        summary: "Change a database's key or cipher format in place.",
        operands: [.databases],
        options: KeyOptions.key.all + KeyOptions.newKey.all
            + [CipherOptions.newCompatibility, CipherOptions.oldCompatibility, CipherOptions.plaintextHeader]
            + UpgradeOptions.all + FleetOptions.all,
        notes: [
            "A copy with the new key is built next to the database and compared with it row by row. Then the copy "
                + "replaces the database in a single rename. At all times, the file is a complete database, encrypted "
                + "with either the old key or the new one. After a crash, run the command again with both keys.",
            "Without a new key, only the format changes. A file that already has the new key and format is left "
                + "unchanged, and the exit status is 0. The command fails if the new key is the same as the old one.",
            FleetOptions.note,
        ],
        examples: [
            "rekey app.db --key-file key --new-key-file new-key",
            "rekey app.db --key-file key --cipher-compatibility 4",
        ],
        isToldByStatus: true,
        run: RekeyCommand.run)
}

enum RekeyCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let oldKey = try KeyOptions.key.requiredProvider(invocation)
        let newKey = try KeyOptions.newKey.provider(invocation)
        try KeyOptions.newKey.confirm(invocation)
        let settings = try CipherOptions.newSettings(invocation)
        let formats = try CipherOptions.oldFormats(invocation)
        let rekey = { @Sendable (paths: DatabasePaths, options: ConversionOptions) in
            try Rekeying(
                at: paths, oldKey: oldKey, newKey: newKey, formats: formats, newSettings: settings, options: options
            ).run()
        }
        let path = invocation.operands[0]
        if try FleetOptions.isFleet(invocation) {
            return try Fleet.run(invocation, in: path, .usual, verb: "rekeyed") {
                FleetResult(try rekey($0, $1), path: $0.database)
            }
        }
        let report = try UpgradeOptions.run(invocation) { try rekey(DatabasePaths(path), $0) }
        return try ConversionFacts.print(report, invocation)
    }
}
