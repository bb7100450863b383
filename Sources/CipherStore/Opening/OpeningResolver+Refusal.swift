internal import CipherDatabaseConversion
internal import CipherErrors

extension OpeningResolver {
    /// Returns the error that states why a file is refused and what to do about it.
    func refusal(_ code: StoreError.Code, _ facts: Decision.Facts, _ inspector: Inspector) -> StoreError {
        switch code {
        case .staleSidecar: return inspector.staleSidecar()
        case .downgrade:
            return .downgrade(
                from: facts.recorded ?? .zero, facts.records, to: configuration.version, path: paths.database)
        case .unexpectedPlaintext:
            guard let threshold = configuration.encryption.sinceVersion else {
                return StoreError(
                    .unexpectedPlaintext, path: paths.database,
                    "the file is plaintext, although its history shows that CipherStore encrypted it: the file was "
                        + "replaced, or another program decrypted it",
                    advice: "check where the file came from; to accept it, set encryption.unexpectedPlaintext to "
                        + "\"encrypt\"")
            }
            return StoreError(
                .unexpectedPlaintext, path: paths.database,
                "the file is plaintext and its recorded version is \(facts.recorded ?? .zero), but according to "
                    + "encryption.sinceVersion, every file has been encrypted since version \(threshold): the file was "
                    + "replaced or restored from a backup",
                advice: "check where the file came from; to accept it, set encryption.unexpectedPlaintext to "
                    + "\"encrypt\". Also check encryption.sinceVersion, which must be the first version of the app "
                    + "that never wrote a plaintext database (omit sinceVersion in the first release that encrypts)")
        case .encryptionDisabled:
            return StoreError(
                .encryptionDisabled, path: paths.database,
                "the file is encrypted, but encryption is off in the configuration",
                advice: "turn encryption on, or set encryption.whenDisabled to \"decrypt\"", changed: .noRow)
        default: return inspector.keyDoesNotFit()
        }
    }
}
