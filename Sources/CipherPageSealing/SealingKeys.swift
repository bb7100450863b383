internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite

/// The keys with which SQLCipher 4 encrypts and authenticates the pages of one file.
struct SealingKeys {
    let encryption: SecretBytes
    let authentication: SecretBytes
    let salt: SecretBytes

    /// Derives the key of the page HMACs from the file's raw key.
    ///
    /// Source: SQLCipher Design, "Key Derivation": PBKDF2 with two rounds over the salt, each byte of which is XORed
    /// with 0x3a.
    ///
    /// - Throws: ``KeyError`` for a key without its salt, or if the cryptographic library fails.
    init(_ key: CipherKey) throws {
        guard let salt = key.salt else { throw KeyError.malformed }
        self.salt = salt
        let encryption = key.rawBytes
        self.encryption = encryption
        let changed = salt.withUnsafeBytes { $0.map { $0 ^ 0x3a } }
        authentication = try SecretBytes(count: CipherKey.rawKeyLength) { output in
            let isDone = encryption.withUnsafeBytes { key in
                changed.withUnsafeBytes { salt in
                    Cryptography.pbkdf2(.sha512, password: key, salt: salt, rounds: 2, into: output)
                }
            }
            guard isDone else { throw KeyError.derivationFailed }
        }
    }
}
