internal import CipherKeyProviders
internal import CipherSQLite

extension Command {
    static let keygen = Command(
        name: "keygen",
        summary: "Make a new random key and store it in a new file.",
        operands: [.init("FILE", kind: .file, "The key file to make; one that exists is never touched.")],
        notes: [
            "The file gets mode 0600 and holds a raw key in the form x'64 hex digits'. Keep a copy in a safe place: "
                + "without the key nobody can read the database, and there is no way around it."
        ],
        examples: ["keygen key"],
        isToldByStatus: true,
        run: KeygenCommand.run)
}

enum KeygenCommand {
    private struct Made: Encodable { let created: String }

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        let path = invocation.operands[0]
        guard try KeyFile.create(path, key: .random()) else {
            throw CommandFailure(
                .cannotCreate, "exists", path: path, "there is a file of this name already",
                advice: "give another name; it was left as it is")
        }
        if invocation.has(.json) {
            try Output.json(Made(created: path))
        } else {
            try Output.line(
                "made the key file \(path): without it the database cannot be opened, so keep a copy in a safe place")
        }
        return .done
    }
}
