/// The hash functions that SQLCipher's formats use.
package enum HashFunction: Sendable, CaseIterable {
    case sha1, sha256, sha512

    /// The size of a digest, and of an HMAC, in bytes.
    package var digestSize: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// The direction of a block cipher.
package enum CipherDirection: Sendable { case encrypt, decrypt }
