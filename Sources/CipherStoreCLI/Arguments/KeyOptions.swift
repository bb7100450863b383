import CipherSQLite
import CipherStore

/// The options that tell where the key is.
enum KeyOptions {
    private static let file = Option(
        "key-file", value: "FILE",
        "Read the key from a file that only its owner can read: a passphrase, or a raw key as x'64 hex digits' or "
            + "x'96 hex digits' (key and salt). One newline at the end is not part of it.")
    private static let environment = Option(
        "key-env", value: "VAR", "Read the key from an environment variable, in the same forms.")
    private static let credential = Option(
        "key-credential", value: "NAME", "Read the key from a systemd credential, in the same forms.")

    static let all = [file, environment, credential]

    /// The provider that was asked for; `nil` where none was.
    ///
    /// - Throws: ``CommandFailure`` with `usage` where more than one was.
    static func provider(_ invocation: Invocation) throws -> (any KeyProvider)? {
        let given = all.filter(invocation.has)
        guard given.count < 2 else {
            let names = given.map { "--\($0.name)" }.joined(separator: " and ")
            throw CommandFailure.usage("\(names) cannot be given together")
        }
        if let path = invocation[file] { return .file(path) }
        if let variable = invocation[environment] { return .environment(variable) }
        if let name = invocation[credential] { return .systemdCredential(name) }
        return nil
    }

    /// The provider of a command that cannot do without.
    static func requiredProvider(_ invocation: Invocation) throws -> any KeyProvider {
        guard let provider = try provider(invocation) else { throw missing }
        return provider
    }

    /// Gives the key of a file that is not plaintext.
    static func key(_ invocation: Invocation, for database: String) throws -> CipherKey {
        try requiredProvider(invocation).key(for: .existing, database: database)
    }

    private static var missing: CommandFailure {
        .usage("a key is needed", advice: "give one of \(all.map(\.usage).joined(separator: ", "))")
    }
}

/// Stands for the key that was not given, where it may turn out that none is needed.
struct MissingKeyProvider: KeyProvider {
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        throw StoreError(
            .keyUnavailable, path: database, "the file is encrypted, and no key was given",
            advice: "give --key-file, --key-env or --key-credential")
    }
}
