internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSecretServiceKeys
internal import CipherSystemFiles

/// The options that specify where a key is.
struct KeyOptions: Sendable {
    /// The key of the database.
    static let key = KeyOptions(prefix: "key", named: "the key") {
        "if the database is plaintext, run cipherstore keygen \($0) to create a key; if it is encrypted, specify the "
            + "file that contains its key"
    }
    /// The key that the database will have.
    static let newKey = KeyOptions(prefix: "new-key", named: "the new key") {
        "run cipherstore keygen \($0) to create a key, or specify the file that contains the new key"
    }
    /// The key of the backup to restore.
    static let backupKey = KeyOptions(prefix: "backup-key", named: "the backup's key") { _ in
        "specify the file that contains the backup's key"
    }

    private let named: String
    /// A closure that receives the path of a key file that does not exist, and returns the advice for it.
    private let adviceForMissingFile: @Sendable (String) -> String
    private let file: Option
    private let environment: Option
    private let credential: Option
    private let secretService: Option

    private init(prefix: String, named name: String, adviceForMissingFile: @escaping @Sendable (String) -> String) {
        named = name
        self.adviceForMissingFile = adviceForMissingFile
        file = Option(
            "\(prefix)-file", value: "FILE", kind: .file,
            "Read \(name) from a file that only its owner can read. If FILE is -, read \(name) from standard input "
                + "or, on a terminal, prompt for a passphrase.")
        environment = Option(
            "\(prefix)-env", value: "VAR", kind: .variable, "Read \(name) from an environment variable.")
        credential = Option("\(prefix)-credential", value: "NAME", "Read \(name) from a systemd credential.")
        secretService = Option(
            "\(prefix)-secret-service", value: "NAME",
            "Read \(name) from the desktop keyring. If the keyring does not contain the key, a command that "
                + "creates an encrypted file also creates the key.")
    }

    /// Returns how keys are written, for the help of a command that takes a key; `nil` for any other command.
    static func forms(_ command: Command) -> String? {
        guard command.options.contains(where: { $0.name == key.file.name }) else { return nil }
        return
            "A key is a passphrase or a raw key, in one line of text. A raw key is written as x'...' with 64 hex "
            + "digits, or with 96 hex digits if a salt follows the key. One newline at the end of the key is ignored. "
            + "In the path of a key file, {name} is replaced by the database's name without its extension, and "
            + "{folder} by the name of the database's folder."
    }

    var all: [Option] { [file, environment, credential, secretService] }

    /// Returns the provider that the options select; `nil` if there is none.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if there is more than one.
    func provider(_ invocation: Invocation) throws -> (any KeyProvider)? {
        let given = all.filter(invocation.has)
        guard given.count < 2 else {
            let names = given.map { "--\($0.name)" }.joined(separator: " and ")
            throw CommandFailure.usage("\(names) cannot be used together")
        }
        if let option = given.first, let place = invocation[option] {
            try Self.refuseKey(
                place, as: "--\(option.name)", option.value == "FILE" ? "the path of a file" : "a name")
        }
        if let path = invocation[file] {
            if path == "-" { return try Self.typed(invocation) }
            return KeyFileTemplate(path, file: keyFile) ?? keyFile(path)
        }
        if let variable = invocation[environment] { return .environment(variable) }
        if let name = invocation[credential] { return .systemdCredential(name) }
        if let name = invocation[secretService] { return .secretService(name, createIfMissing: true) }
        return nil
    }

    /// Refuses a raw key where the command line expects something else.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage`, which does not repeat the key.
    static func refuseKey(_ text: String, as place: String, _ expected: String) throws {
        guard KeyText.isRawKey(text) else { return }
        throw CommandFailure.usage(
            "\(place) takes \(expected), not the key itself",
            advice: "other users can read the command line, so put the key in a file, or specify "
                + "--\(key.file.name) - and type the key")
    }

    /// Returns the provider of a key file, with advice for the command line.
    @Sendable private func keyFile(_ path: String) -> FileKeyProvider {
        FileKeyProvider(path: path, advice: adviceForMissingFile(path))
    }

    /// Reads the key that an option asks to read from standard input, if there is one.
    static func readTyped(_ invocation: Invocation) throws {
        if [key, newKey, backupKey].contains(where: { invocation[$0.file] == "-" }) { _ = try typed(invocation) }
    }

    /// Reads the key from standard input.
    private static func typed(_ invocation: Invocation) throws -> TypedKeyProvider {
        guard [key, newKey, backupKey].count(where: { invocation[$0.file] == "-" }) == 1 else {
            throw CommandFailure.usage("only one key can be read from standard input")
        }
        try TypedKeyProvider.shared.text()
        return .shared
    }

    /// Asks the user to confirm a typed key that a database is about to get.
    func confirm(_ invocation: Invocation) throws {
        if let typed = try provider(invocation) as? TypedKeyProvider { try typed.confirm() }
    }

    /// Requests the key that all files of a fleet share, so that a missing key ends the run before it begins.
    ///
    /// - Returns: Warnings that the report of every file repeats.
    /// - Throws: ``CommandFailure`` with the code `usage` if the path of key files has an unknown placeholder.
    func checkShared(_ invocation: Invocation, in folder: String) throws -> [String] {
        if let path = invocation[file], let unknown = KeyFileTemplate.unknownPlaceholder(in: path) {
            throw CommandFailure.usage(
                "--\(file.name) contains the unknown placeholder \(unknown)",
                advice: "use {name} for the database's name without its extension, or {folder} for the name of its "
                    + "folder")
        }
        guard let provider = try provider(invocation), !(provider is KeyFileTemplate) else { return [] }
        let settings = (try? CipherOptions.newSettings(invocation)) ?? CipherSettings()
        return try provider.key(for: .existing, database: folder).mistakes(settings).map(\.description)
    }

    /// Returns the provider of a command that requires a key.
    func requiredProvider(_ invocation: Invocation) throws -> any KeyProvider {
        guard let provider = try provider(invocation) else {
            throw CommandFailure(
                .usage, "usage", path: invocation.operands.first, "a key is required",
                advice:
                    "specify the key with one of these options: \(all.map(\.usage).joined(separator: ", ")); to "
                    + "create a key file, run cipherstore keygen FILE")
        }
        return provider
    }

    /// Calls `body` with the provider of a command that only reads, and so needs a key only if the file is encrypted.
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

/// Stands in for a key that was not specified, in case none is needed.
struct MissingKeyProvider: KeyProvider {
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        throw StoreError(
            .keyUnavailable, path: database, "no key was specified",
            advice:
                "use --key-file, --key-env, --key-credential or --key-secret-service; to create a key file, run "
                + "cipherstore keygen")
    }
}
