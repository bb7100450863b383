// CommonCrypto.swift has the same declarations for platforms with CommonCrypto.
#if !canImport(CommonCrypto)
    internal import CCipherCrypto

    /// The stateless cryptographic primitives of libcrypto.
    package enum Cryptography {
        /// Fills a buffer with random bytes; `false` if the generator fails.
        package static func randomize(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
            guard let count = Int32(exactly: buffer.count) else { return false }
            return RAND_bytes(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), count) == 1
        }

        /// Overwrites a secret in a way that the compiler must not optimize away.
        package static func erase(_ buffer: UnsafeMutableRawBufferPointer) {
            OPENSSL_cleanse(buffer.baseAddress, buffer.count)
        }

        /// Whether two secrets are equal, in a time that depends only on their lengths.
        package static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
            left.count == right.count && CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
        }

        /// Derives a key by PBKDF2 and fills `output` with it; `false` if libcrypto fails.
        ///
        /// Source: RFC 8018, section 5.2.
        package static func pbkdf2(
            _ function: HashFunction, password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer, rounds: Int,
            into output: UnsafeMutableRawBufferPointer
        ) -> Bool {
            guard let passwordCount = Int32(exactly: password.count), let saltCount = Int32(exactly: salt.count),
                let rounds = Int32(exactly: rounds), let outputCount = Int32(exactly: output.count)
            else { return false }
            return PKCS5_PBKDF2_HMAC(
                password.baseAddress?.assumingMemoryBound(to: CChar.self), passwordCount,
                salt.baseAddress?.assumingMemoryBound(to: UInt8.self), saltCount, rounds, function.algorithm,
                outputCount, output.baseAddress?.assumingMemoryBound(to: UInt8.self)) == 1
        }

        /// Returns the SHA-256 of non-secret bytes; `nil` if libcrypto was built without it.
        package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
            var digest = [UInt8](repeating: 0, count: HashFunction.sha256.digestSize)
            guard EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil) == 1 else { return nil }
            return digest
        }

    }

    /// AES-256 in CBC mode without padding, with one key, for use by one thread at a time.
    ///
    /// Source: NIST SP 800-38A, section 6.2.
    package final class AESCBC {
        private let context: OpaquePointer

        /// Creates a cipher; `nil` if libcrypto fails or the key is not 32 bytes long.
        package init?(_ direction: CipherDirection, key: UnsafeRawBufferPointer) {
            guard key.count == 32, let context = EVP_CIPHER_CTX_new() else { return nil }
            self.context = context
            guard
                EVP_CipherInit_ex(
                    context, EVP_aes_256_cbc(), nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil,
                    direction == .encrypt ? 1 : 0) == 1,
                EVP_CIPHER_CTX_set_padding(context, 0) == 1
            else { return nil }
        }

        deinit { EVP_CIPHER_CTX_free(context) }

        /// Encrypts or decrypts whole blocks of 16 bytes as a new message; `false` if libcrypto fails.
        ///
        /// - Parameter vector: The initialization vector, 16 bytes.
        package func apply(
            _ input: UnsafePointer<UInt8>, count: Int, vector: UnsafePointer<UInt8>,
            into output: UnsafeMutablePointer<UInt8>
        ) -> Bool {
            guard let count = Int32(exactly: count), count % 16 == 0 else { return false }
            var written: Int32 = 0
            // Without a direction, the context keeps its current one.
            return EVP_CipherInit_ex(context, nil, nil, nil, vector, -1) == 1
                && EVP_CipherUpdate(context, output, &written, input, count) == 1 && written == count
        }
    }

    /// HMACs with one key, for use by one thread at a time.
    ///
    /// Source: RFC 2104.
    package final class HMAC {
        private let context: OpaquePointer
        private let size: Int

        /// Creates an HMAC context; `nil` if libcrypto fails.
        ///
        /// - Parameter key: The key, of at least one byte.
        package init?(_ function: HashFunction, key: UnsafeRawBufferPointer) {
            guard let context = cs_hmac(function.name, key.baseAddress, key.count) else { return nil }
            self.context = context
            size = function.digestSize
        }

        deinit { EVP_MAC_CTX_free(context) }

        /// Begins the HMAC of another message; `false` if libcrypto fails.
        package func begin() -> Bool {
            // Without a key, the context restarts with its current one.
            EVP_MAC_init(context, nil, 0, nil) == 1
        }

        /// Adds bytes to the message; `false` if libcrypto fails.
        package func update(_ bytes: UnsafePointer<UInt8>, count: Int) -> Bool {
            EVP_MAC_update(context, bytes, count) == 1
        }

        /// Writes the HMAC, whose size is the hash function's ``HashFunction/digestSize``; `false` if libcrypto fails.
        package func finish(into mac: UnsafeMutablePointer<UInt8>) -> Bool {
            var written = 0
            return EVP_MAC_final(context, mac, &written, size) == 1 && written == size
        }
    }

    extension HashFunction {
        fileprivate var algorithm: OpaquePointer? {
            switch self {
            case .sha1: EVP_sha1()
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            }
        }

        fileprivate var name: String {
            switch self {
            case .sha1: "SHA1"
            case .sha256: "SHA256"
            case .sha512: "SHA512"
            }
        }
    }
#endif
