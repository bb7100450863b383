internal import CipherKeyProviders
internal import CipherSQLite

extension Command {
    static let keygen = Command(
        name: "keygen",
        summary: "Create a random key and store it in a new file.",
        operands: [.init("FILE", kind: .file, "The key file to create. An existing file is never changed.")],
        notes: [
            "The file has mode 0600 and contains a raw key, written as x'...' with 64 hex digits. Keep a copy of the "
                + "file in a safe place: without the key, the database cannot be read."
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
                .cannotCreate, "exists", path: path, "this file already exists and was not changed",
                advice: "choose another name")
        }
        if invocation.has(.json) {
            try Output.json(Made(created: path))
        } else {
            try Output.line(
                "created the key file \(path); keep a safe copy, because the database cannot be opened without the key")
        }
        return .done
    }
}
