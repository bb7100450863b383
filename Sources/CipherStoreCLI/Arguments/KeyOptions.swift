internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSecretServiceKeys

/// The options that tell where a key is.
struct KeyOptions: Sendable {
    /// The key of the database.
    static let key = KeyOptions(prefix: "key", named: "the key")
    /// The key that the database is to have.
    static let newKey = KeyOptions(prefix: "new-key", named: "the new key")

    /// The key of a backup that is restored.
    static let backupKey = KeyOptions(prefix: "backup-key", named: "the backup's key")

    private let named: String
    private let file: Option
    private let environment: Option
    private let credential: Option
    private let secretService: Option

    private init(prefix: String, named name: String) {
        named = name
        file = Option(
            "\(prefix)-file", value: "FILE", kind: .file,
            "Read \(name) from a file that only its owner can read; - is standard input, where a terminal is asked for a "
                + "passphrase.")
        environment = Option(
            "\(prefix)-env", value: "VAR", kind: .variable, "Read \(name) from an environment variable.")
        credential = Option("\(prefix)-credential", value: "NAME", "Read \(name) from a systemd credential.")
        secretService = Option(
            "\(prefix)-secret-service", value: "NAME",
            "Read \(name) from the desktop's key store; made there if a file is to be encrypted with it.")
    }

    /// How keys are written, for the help of a command that takes one; `nil` for another.
    static func forms(_ command: Command) -> String? {
        guard command.options.contains(where: { $0.name == key.file.name }) else { return nil }
        return
            "A key is a passphrase, or a raw key as x'64 hex digits' or x'96 hex digits' (key and salt), wherever it "
            + "is read from. One newline at its end is not part of it. In the path of a key file {name} stands for the "
            + "database's name without its ending, {folder} for the name of its folder."
    }

    var all: [Option] { [file, environment, credential, secretService] }

    /// The provider that was asked for; `nil` if none was.
    ///
    /// - Throws: ``CommandFailure`` with `usage` if more than one was.
    func provider(_ invocation: Invocation) throws -> (any KeyProvider)? {
        let given = all.filter(invocation.has)
        guard given.count < 2 else {
            let names = given.map { "--\($0.name)" }.joined(separator: " and ")
            throw CommandFailure.usage("\(names) cannot be given together")
        }
        if let path = invocation[file] {
            if path == "-" { return try Self.typed(invocation) }
            return KeyFileTemplate(path) ?? Self.keyFile(path)
        }
        if let variable = invocation[environment] { return .environment(variable) }
        if let name = invocation[credential] { return .systemdCredential(name) }
        if let name = invocation[secretService] { return .secretService(name, createIfMissing: true) }
        return nil
    }

    /// The key in a file, with the advice that fits a command line.
    static func keyFile(_ path: String) -> FileKeyProvider {
        FileKeyProvider(
            path: path,
            advice: "run cipherstore keygen \(path) to make a key for a database that is still plaintext; an encrypted "
                + "database needs the key file that it was encrypted with")
    }

    /// The key on standard input, which is read now.
    private static func typed(_ invocation: Invocation) throws -> TypedKeyProvider {
        guard [key, newKey, backupKey].count(where: { invocation[$0.file] == "-" }) == 1 else {
            throw CommandFailure.usage("only one key can come from standard input")
        }
        try TypedKeyProvider.shared.text()
        return .shared
    }

    /// Has a person confirm the key that a database is about to get, and warns of one that was probably meant to be raw.
    func confirm(_ invocation: Invocation) throws {
        if let typed = try provider(invocation) as? TypedKeyProvider { try typed.confirm() }
        guard let source = try provider(invocation) as? any KeyTextSource, !(source is KeyFileTemplate),
            let text = try? source.keyText(database: ""),
            (try? CipherKey(text: text))?.isBareDigits == true
        else { return }
        Output.complain(
            "warning: \(invocation[file] ?? invocation[environment] ?? named): hex digits without x'…' around them are used "
                + "as a passphrase; write x'…' for a raw key")
    }

    /// Asks for the key that all files of a fleet share, so that a missing one ends the run before it begins.
    ///
    /// - Throws: ``CommandFailure`` with `usage` where the path of key files has a placeholder that stands for nothing.
    func checkShared(_ invocation: Invocation, in folder: String) throws {
        if let path = invocation[file], let unknown = KeyFileTemplate.unknownPlaceholder(in: path) {
            throw CommandFailure.usage(
                "--\(file.name): \(unknown) stands for nothing",
                advice: "{name} stands for the database's name without its ending, {folder} for that of its folder")
        }
        guard let provider = try provider(invocation), !(provider is KeyFileTemplate) else { return }
        _ = try provider.key(for: .existing, database: folder)
    }

    /// The provider of a command that cannot do without.
    func requiredProvider(_ invocation: Invocation) throws -> any KeyProvider {
        guard let provider = try provider(invocation) else {
            throw CommandFailure(
                .usage, "usage", path: invocation.operands.first, "a key is needed",
                advice:
                    "give one of \(all.map(\.usage).joined(separator: ", ")); cipherstore keygen FILE makes a key file")
        }
        return provider
    }

    /// Lends the provider of a command that only reads, and needs a key only where the file is encrypted.
    func reading<Result>(_ invocation: Invocation, _ body: (any KeyProvider) throws -> Result) throws -> Result {
        if let provider = try provider(invocation) { return try body(provider) }
        do {
            return try body(MissingKeyProvider())
        } catch let error as StoreError where error.code == .keyUnavailable {
            _ = try requiredProvider(invocation)
            throw error
        }
    }
}

/// Stands for the key that was not given, where it may turn out that none is needed.
struct MissingKeyProvider: KeyProvider {
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        throw StoreError(
            .keyUnavailable, path: database, "no key was given",
            advice:
                "give --key-file, --key-env, --key-credential or --key-secret-service; cipherstore keygen makes a key "
                + "file")
    }
}
