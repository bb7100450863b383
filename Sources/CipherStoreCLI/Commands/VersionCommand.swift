internal import CipherSQLite

extension Command {
    static let version = Command(
        name: "version",
        summary: "Print the versions, and the known faults of the engine.",
        notes: [
            "The listed faults of SQLite are those that a file from an untrusted source can reach. A fault is fenced if "
                + "cipherstore prevents the file from reaching it."
        ],
        examples: ["version", "version --json"],
        run: { invocation in
            if invocation.has(.json) {
                try Output.json(VersionReport())
            } else {
                try Output.text(HelpText.version)
            }
            return .done
        })
}

/// The versions of the program and its engine.
private struct VersionReport: Encodable {
    let version = ToolVersion.number
    let sqlCipher = Engine.current.cipherVersion
    let sqlite = Engine.current.sqliteVersion
    let hasWALResetFault = Engine.current.hasWALResetFault
    let faults = Engine.current.faults
}
