internal import COpenSSL

/// The keys with which SQLCipher 4 encrypts and authenticates the pages of one file.
struct SealingKeys {
    static let keySize = CipherKey.rawKeyLength

    let encryption: SecretBytes
    let authentication: SecretBytes
    let salt: SecretBytes

    /// Derives the key of the page HMACs from the file's raw key.
    ///
    /// Source: SQLCipher Design, "Key Derivation": PBKDF2 with two rounds over the salt, each byte of it changed by 0x3a.
    ///
    /// - Throws: ``KeyError`` for a key without its salt, or where libcrypto refuses.
    init(_ key: CipherKey) throws {
        guard let salt = key.salt else { throw KeyError.malformed }
        self.salt = salt
        let encryption = key.rawBytes
        self.encryption = encryption
        let changed = salt.withUnsafeBytes { $0.map { $0 ^ 0x3a } }
        authentication = try SecretBytes(count: Self.keySize) { output in
            let done = encryption.withUnsafeBytes { key in
                PKCS5_PBKDF2_HMAC(
                    key.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(key.count), changed,
                    Int32(changed.count), 2, EVP_sha512(), Int32(output.count),
                    output.baseAddress?.assumingMemoryBound(to: UInt8.self))
            }
            guard done == 1 else { throw KeyError.derivationFailed }
        }
    }
}
