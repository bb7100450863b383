internal import COpenSSL

/// Seals and opens single pages in the format of SQLCipher 4.
///
/// A sealed page is its content under AES-256 in CBC mode, the initialisation vector, and an HMAC-SHA512 over both and
/// the page's number, four bytes with the lowest first. The first page begins with the salt in place of SQLite's magic
/// string, outside of what is encrypted and authenticated. The algorithms are libcrypto's; only their order is here.
/// Source: SQLCipher Design, "Database Encryption and Decryption" and "Per-Page MAC".
final class PageSealer {
    static let pageSize = 4096
    /// Behind the content: the initialisation vector and the HMAC.
    static let reservedSize = vectorSize + macSize
    static let vectorSize = 16
    private static let macSize = 64
    private static let contentSize = pageSize - reservedSize

    private let salt: SecretBytes
    private let encryption: OpaquePointer
    private let decryption: OpaquePointer
    private let authentication: OpaquePointer

    /// A sealer with the keys of one file, for one thread at a time.
    ///
    /// - Throws: ``KeyError`` where libcrypto refuses.
    init(_ keys: SealingKeys) throws {
        guard let encryption = EVP_CIPHER_CTX_new(), let decryption = EVP_CIPHER_CTX_new(),
            let algorithm = EVP_MAC_fetch(nil, "HMAC", nil), let authentication = EVP_MAC_CTX_new(algorithm)
        else { throw KeyError.derivationFailed }
        EVP_MAC_free(algorithm)
        salt = keys.salt
        self.encryption = encryption
        self.decryption = decryption
        self.authentication = authentication
        let ready = keys.encryption.withBytes { key in
            EVP_EncryptInit_ex(encryption, EVP_aes_256_cbc(), nil, key, nil) == 1
                && EVP_DecryptInit_ex(decryption, EVP_aes_256_cbc(), nil, key, nil) == 1
                && EVP_CIPHER_CTX_set_padding(encryption, 0) == 1 && EVP_CIPHER_CTX_set_padding(decryption, 0) == 1
        }
        guard ready, keys.authentication.withBytes({ Self.begin(authentication, key: $0) }) else {
            throw KeyError.derivationFailed
        }
    }

    deinit {
        EVP_CIPHER_CTX_free(encryption)
        EVP_CIPHER_CTX_free(decryption)
        EVP_MAC_CTX_free(authentication)
    }

    private static func begin(_ context: OpaquePointer, key: UnsafePointer<UInt8>?) -> Bool {
        var digest: [CChar] = Array("SHA512".utf8CString)
        // libcrypto keeps the pointer to the parameter's name, so a name that lives for the call alone is too short-lived.
        return "digest".withCString { name in
            digest.withUnsafeMutableBufferPointer { value in
                let parameters = [
                    OSSL_PARAM_construct_utf8_string(name, value.baseAddress, 0), OSSL_PARAM_construct_end(),
                ]
                return EVP_MAC_init(context, key, SealingKeys.keySize, parameters) == 1
            }
        }
    }

    /// Writes the sealed form of a page; `false` where libcrypto refuses.
    ///
    /// - Parameter vector: 16 random bytes, never used before.
    func seal(
        _ page: UnsafePointer<UInt8>, number: UInt32, vector: UnsafePointer<UInt8>,
        into sealed: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        let skipped = skippedBytes(of: number)
        if skipped > 0 {
            salt.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: sealed, count: skipped).copyMemory(from: $0) }
        }
        var written: Int32 = 0
        guard EVP_EncryptInit_ex(encryption, nil, nil, nil, vector) == 1,
            EVP_EncryptUpdate(
                encryption, sealed + skipped, &written, page + skipped, Int32(Self.contentSize - skipped)) == 1,
            Int(written) == Self.contentSize - skipped
        else { return false }
        (sealed + Self.contentSize).update(from: vector, count: Self.vectorSize)
        return authenticate(sealed, number, into: sealed + Self.contentSize + Self.vectorSize)
    }

    /// Writes the content of a sealed page; `false` where it is not authentic.
    func open(_ sealed: UnsafePointer<UInt8>, number: UInt32, into page: UnsafeMutablePointer<UInt8>) -> Bool {
        var mac = [UInt8](repeating: 0, count: Self.macSize)
        let stored = sealed + Self.contentSize + Self.vectorSize
        guard
            mac.withUnsafeMutableBufferPointer({ $0.baseAddress.map { authenticate(sealed, number, into: $0) } })
                == true,
            CRYPTO_memcmp(mac, stored, Self.macSize) == 0
        else { return false }
        let skipped = skippedBytes(of: number)
        if skipped > 0 { page.update(from: Self.magic, count: skipped) }
        var written: Int32 = 0
        guard EVP_DecryptInit_ex(decryption, nil, nil, nil, sealed + Self.contentSize) == 1,
            EVP_DecryptUpdate(
                decryption, page + skipped, &written, sealed + skipped, Int32(Self.contentSize - skipped)) == 1,
            Int(written) == Self.contentSize - skipped
        else { return false }
        (page + Self.contentSize).update(repeating: 0, count: Self.reservedSize)
        return true
    }

    /// Source: SQLite, "Database File Format", section 1.3.1.
    static let magic = Array("SQLite format 3\0".utf8)

    /// How much of a page's begin is neither encrypted nor authenticated.
    private func skippedBytes(of number: UInt32) -> Int { number == 1 ? salt.count : 0 }

    private func authenticate(
        _ sealed: UnsafePointer<UInt8>, _ number: UInt32, into mac: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        let skipped = skippedBytes(of: number)
        var written = 0
        // Without a key the context begins anew with the one that it has.
        return EVP_MAC_init(authentication, nil, 0, nil) == 1
            && EVP_MAC_update(authentication, sealed + skipped, Self.contentSize + Self.vectorSize - skipped) == 1
            && withUnsafeBytes(of: number.littleEndian) {
                EVP_MAC_update(authentication, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count) == 1
            }
            && EVP_MAC_final(authentication, mac, &written, Self.macSize) == 1 && written == Self.macSize
    }
}

extension SecretBytes {
    fileprivate func withBytes<Result>(_ body: (UnsafePointer<UInt8>?) -> Result) -> Result {
        withUnsafeBytes { body($0.baseAddress?.assumingMemoryBound(to: UInt8.self)) }
    }
}
