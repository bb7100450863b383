internal import CipherDatabaseConversion
internal import CipherErrors

extension Command {
    static let verify = Command(
        name: "verify",
        summary: "Check every page and the structure, without changing anything.",
        operands: [.databases],
        options: KeyOptions.key.all + [CipherOptions.detect, CipherOptions.compatibility] + [.progress]
            + FleetOptions.all,
        notes: [
            "A plaintext file requires no key, and only its structure is checked. The exit status is 65 if the "
                + "database is damaged or the key does not open it. With --recursive and a key, verify warns about "
                + "each plaintext file.",
            "Values that the schema forbids, and full-text indexes that do not match their text, are warnings, because "
                + "undamaged databases have them too.",
            FleetOptions.note,
        ],
        examples: ["verify app.db --key-file key"],
        isToldByStatus: true,
        run: VerifyCommand.run)
}

enum VerifyCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let path = invocation.operands[0]
        // Wrong options are also rejected for a plaintext file.
        let hasKey = try KeyOptions.key.provider(invocation) != nil
        let formats = try CipherOptions.formats(invocation)
        let verify = { @Sendable (paths: DatabasePaths) in
            try KeyOptions.key.reading(invocation) {
                try Verification.run(at: paths, provider: $0, formats: formats, isAlone: true)
            }
        }
        if try FleetOptions.isFleet(invocation) {
            return try Fleet.run(invocation, in: path, .usual, verb: "sound", locksFolders: false) { paths, _ in
                FleetResult(try verify(paths), path: paths.database, hasKey: hasKey)
            }
        }
        let found = try verify(DatabasePaths(path))
        for warning in found.warnings { Output.complain("warning: \(warning)") }
        if invocation.has(.json) { try Output.json(found) } else { try print(found) }
        guard !found.isSound else { return .done }
        Output.complain(FailureReport(found.failure).line)
        return .badData
    }

    private static func print(_ found: Verification) throws {
        guard found.isSound else {
            for complaint in found.complaints { try Output.line(complaint) }
            return
        }
        var sheet = FactSheet()
        sheet.add("sound", found.path)
        sheet.add(
            "pages",
            found.authentication.map { $0.text() }
                ?? "not authenticated, because the database is \(found.state.rawValue)")
        sheet.add(
            "structure",
            found.warnings.isEmpty ? "tables and indexes are intact" : "no damage was found; see the warnings")
        try sheet.print()
    }
}
