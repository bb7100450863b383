internal import CipherDatabaseConversion
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite

extension Command {
    static let inspect = Command(
        name: "inspect",
        summary: "Report the state of a database file without changing it.",
        operands: [.database],
        options: KeyOptions.key.all + [CipherOptions.detect, CipherOptions.compatibility],
        notes: [
            "The state is missing, empty, plaintext, encrypted (the key opens the file), opaque (the file is encrypted "
                + "or damaged; only a key can show which), needsRecovery (the journal of a program that crashed must "
                + "be rolled back first) or staleSidecar (the -wal or -journal next to the file belongs to another "
                + "copy of the database).",
            "The exit status is 66 if the file is missing, 65 if the key does not open the file or if a plaintext file "
                + "is damaged, and 0 otherwise.",
        ],
        examples: [
            "inspect app.db",
            "inspect app.db --key-file key --detect --json",
        ],
        run: InspectCommand.run)
}

enum InspectCommand {
    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let path = invocation.operands[0]
        let provider = try KeyOptions.key.provider(invocation)
        let formats = try CipherOptions.formats(invocation)
        guard provider != nil || !invocation.has(CipherOptions.detect) else {
            throw CommandFailure.usage("--detect requires a key, because it tries the key with each format")
        }
        let found = try Inspector(path: path).inspect(provider: provider, formats: formats)
        if invocation.has(.json) { try Output.json(found) } else { try print(found, path) }
        if let warning = found.cipherCompatibility.flatMap({ CipherSettings(compatibility: $0).authenticationWarning })
        {
            Output.complain("warning: \(warning)")
        }
        guard found.state != .missing else {
            Output.complain("\(found.path): there is no such file")
            return .noInput
        }
        return .done
    }

    /// Returns an explanation of what an opaque file may be, which follows the name of its state.
    private static func explanation(_ found: Inspection, _ path: String) throws -> String {
        guard found.state == .opaque else { return "" }
        return switch try Inspector(path: path).content() {
        case .notADatabase(let reason): " (does not look like a database: \(reason))"
        case .damagedFirstPage(let detail): " (\(detail))"
        case .maybeEncrypted: " (encrypted or damaged; specify a key with --key-file to find out which)"
        }
    }

    private static func print(_ found: Inspection, _ path: String) throws {
        var sheet = FactSheet()
        sheet.add("path", found.path)
        sheet.add("state", found.state.rawValue + (try explanation(found, path)))
        if found.state != .missing { sheet.add("size", TerminalText.size(found.size)) }
        sheet.add("cipher format", found.cipherCompatibility.map(String.init))
        sheet.add("version", (found.recordedVersion?.description ?? found.version.map(String.init)))
        if let recorded = found.recordedVersion?.wholeNumber, recorded != found.version {
            sheet.add("user_version", found.version.map(String.init))
        }
        sheet.add("application id", found.applicationID.map(String.init))
        sheet.add("journal mode", found.journalMode)
        for (name, size) in found.sidecars.sorted(by: { $0.key < $1.key }) {
            sheet.add("sidecar", "\(name) (\(TerminalText.size(size)))")
        }
        try sheet.print()
    }
}
