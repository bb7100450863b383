// Libcrypto.swift has the same declarations for platforms without CommonCrypto.
#if canImport(CommonCrypto)
    internal import CipherPlatform
    internal import CommonCrypto

    /// The stateless cryptographic primitives of CommonCrypto.
    package enum Cryptography {
        /// Fills a buffer with random bytes; `false` if the generator fails.
        package static func randomize(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
            guard let start = buffer.baseAddress else { return true }
            return CCRandomGenerateBytes(start, buffer.count) == kCCSuccess
        }

        /// Overwrites a secret in a way that the compiler must not optimize away.
        package static func erase(_ buffer: UnsafeMutableRawBufferPointer) {
            guard let start = buffer.baseAddress else { return }
            memset_s(start, buffer.count, 0, buffer.count)
        }

        /// Whether two secrets are equal, in a time that depends only on their lengths.
        package static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
            guard left.count == right.count else { return false }
            guard let left = left.baseAddress, let start = right.baseAddress else { return true }
            return timingsafe_bcmp(left, start, right.count) == 0
        }

        /// Derives a key by PBKDF2 and fills `output` with it; `false` if CommonCrypto fails.
        ///
        /// Source: RFC 8018, section 5.2.
        package static func pbkdf2(
            _ function: HashFunction, password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer, rounds: Int,
            into output: UnsafeMutableRawBufferPointer
        ) -> Bool {
            guard let rounds = UInt32(exactly: rounds) else { return false }
            return CCKeyDerivationPBKDF(
                CCPBKDFAlgorithm(kCCPBKDF2), password.baseAddress?.assumingMemoryBound(to: CChar.self),
                password.count, salt.baseAddress?.assumingMemoryBound(to: UInt8.self), salt.count,
                function.pseudoRandomAlgorithm, rounds, output.baseAddress?.assumingMemoryBound(to: UInt8.self),
                output.count) == kCCSuccess
        }

        /// Returns the SHA-256 of non-secret bytes; `nil` for 4 GB or more, which CommonCrypto does not accept in one
        /// call.
        package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
            guard let count = CC_LONG(exactly: bytes.count) else { return nil }
            var digest = [UInt8](repeating: 0, count: HashFunction.sha256.digestSize)
            CC_SHA256(bytes.baseAddress, count, &digest)
            return digest
        }
    }

    /// AES-256 in CBC mode without padding, with one key, for use by one thread at a time.
    ///
    /// Source: NIST SP 800-38A, section 6.2.
    package final class AESCBC {
        private let cryptor: CCCryptorRef

        /// Creates a cipher; `nil` if CommonCrypto fails or the key is not 32 bytes long.
        package init?(_ direction: CipherDirection, key: UnsafeRawBufferPointer) {
            var cryptor: CCCryptorRef?
            guard key.count == kCCKeySizeAES256,
                // No options means CBC without padding.
                CCCryptorCreate(
                    CCOperation(direction == .encrypt ? kCCEncrypt : kCCDecrypt), CCAlgorithm(kCCAlgorithmAES), 0,
                    key.baseAddress, key.count, nil, &cryptor) == kCCSuccess,
                let cryptor
            else { return nil }
            self.cryptor = cryptor
        }

        deinit { CCCryptorRelease(cryptor) }

        /// Encrypts or decrypts whole blocks of 16 bytes as a new message; `false` if CommonCrypto fails.
        ///
        /// - Parameter vector: The initialization vector, 16 bytes.
        package func apply(
            _ input: UnsafePointer<UInt8>, count: Int, vector: UnsafePointer<UInt8>,
            into output: UnsafeMutablePointer<UInt8>
        ) -> Bool {
            guard count % kCCBlockSizeAES128 == 0 else { return false }
            var written = 0
            return CCCryptorReset(cryptor, vector) == kCCSuccess
                && CCCryptorUpdate(cryptor, input, count, output, count, &written) == kCCSuccess && written == count
        }
    }

    /// HMACs with one key, for use by one thread at a time.
    ///
    /// Source: RFC 2104.
    package final class HMAC {
        private let algorithm: CCHmacAlgorithm
        private let key: UnsafeMutableRawBufferPointer
        private let context: UnsafeMutablePointer<CCHmacContext>

        /// Creates an HMAC context; `nil` if CommonCrypto fails, which it never does.
        ///
        /// - Parameter key: The key, of at least one byte.
        package init?(_ function: HashFunction, key: UnsafeRawBufferPointer) {
            algorithm = function.hmacAlgorithm
            self.key = .allocate(byteCount: key.count, alignment: 16)
            self.key.copyMemory(from: key)
            context = .allocate(capacity: 1)
            context.initialize(to: CCHmacContext())
        }

        deinit {
            Cryptography.erase(key)
            Cryptography.erase(UnsafeMutableRawBufferPointer(start: context, count: MemoryLayout<CCHmacContext>.size))
            key.deallocate()
            context.deallocate()
        }

        /// Begins the HMAC of another message; `false` if CommonCrypto fails.
        package func begin() -> Bool {
            CCHmacInit(context, algorithm, key.baseAddress, key.count)
            return true
        }

        /// Adds bytes to the message; `false` if CommonCrypto fails.
        package func update(_ bytes: UnsafePointer<UInt8>, count: Int) -> Bool {
            CCHmacUpdate(context, bytes, count)
            return true
        }

        /// Writes the HMAC, whose size is the hash function's ``HashFunction/digestSize``; `false` if CommonCrypto
        /// fails.
        package func finish(into mac: UnsafeMutablePointer<UInt8>) -> Bool {
            CCHmacFinal(context, mac)
            return true
        }
    }

    extension HashFunction {
        fileprivate var pseudoRandomAlgorithm: CCPseudoRandomAlgorithm {
            switch self {
            case .sha1: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA1)
            case .sha256: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA256)
            case .sha512: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA512)
            }
        }

        fileprivate var hmacAlgorithm: CCHmacAlgorithm {
            switch self {
            case .sha1: CCHmacAlgorithm(kCCHmacAlgSHA1)
            case .sha256: CCHmacAlgorithm(kCCHmacAlgSHA256)
            case .sha512: CCHmacAlgorithm(kCCHmacAlgSHA512)
            }
        }
    }
#endif
