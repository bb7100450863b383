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
                    "the file is plaintext, but its history records that CipherStore encrypted it: it was swapped, or "
                        + "another program decrypted it",
                    advice: "check its origin; set encryption.unexpectedPlaintext to encrypt to accept it")
            }
            return StoreError(
                .unexpectedPlaintext, path: paths.database,
                "the file is plaintext and records version \(facts.recorded ?? .zero), but according to "
                    + "`encryption.sinceVersion` no version from \(threshold) on was plaintext: it was swapped in "
                    + "or restored from a backup",
                advice: "check its origin; sinceVersion is the first version that never shipped in plaintext, "
                    + "and is omitted in the first release that encrypts; set encryption.unexpectedPlaintext to "
                    + "encrypt to accept such a file")
        case .encryptionDisabled:
            return StoreError(
                .encryptionDisabled, path: paths.database,
                "the file is encrypted, but encryption is off in the configuration",
                advice: "turn encryption on, or set encryption.whenDisabled to decrypt", changed: .noRow)
        default: return inspector.keyDoesNotFit()
        }
    }
}
