internal import CipherKeyProviders
internal import CipherSQLite

extension Command {
    static let keygen = Command(
        name: "keygen",
        summary: "Create a new random key and store it in a new file.",
        operands: [.init("FILE", kind: .file, "The key file to create; an existing file is never changed.")],
        notes: [
            "The file gets mode 0600 and holds a raw key in the form x'64 hex digits'. Keep a copy in a safe place: "
                + "without the key the database cannot be read."
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
                .cannotCreate, "exists", path: path, "a file with this name already exists",
                advice: "choose another name; the file was not changed")
        }
        if invocation.has(.json) {
            try Output.json(Made(created: path))
        } else {
            try Output.line(
                "created the key file \(path): without it the database cannot be opened, so keep a copy in a "
                    + "safe place")
        }
        return .done
    }
}
