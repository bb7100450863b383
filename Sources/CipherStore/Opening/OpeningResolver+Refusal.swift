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
                    "the file is plaintext, but its history records that CipherStore encrypted it: it was replaced, "
                        + "or another program decrypted it",
                    advice: "check where the file comes from, or set encryption.unexpectedPlaintext to encrypt to "
                        + "accept it")
            }
            return StoreError(
                .unexpectedPlaintext, path: paths.database,
                "the file is plaintext and records version \(facts.recorded ?? .zero), but encryption.sinceVersion "
                    + "states that files are encrypted since version \(threshold): the file was replaced or restored "
                    + "from a backup",
                advice: "check where the file comes from, or set encryption.unexpectedPlaintext to encrypt to accept "
                    + "it; encryption.sinceVersion must be the first version that never shipped in plaintext (omit it "
                    + "in the first release that encrypts)")
        case .encryptionDisabled:
            return StoreError(
                .encryptionDisabled, path: paths.database,
                "the file is encrypted, but encryption is off in the configuration",
                advice: "turn encryption on, or set encryption.whenDisabled to decrypt", changed: .noRow)
        default: return inspector.keyDoesNotFit()
        }
    }
}
