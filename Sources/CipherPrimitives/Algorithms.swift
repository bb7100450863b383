/// The hash functions that SQLCipher's formats use.
package enum HashFunction: Sendable, CaseIterable {
    case sha1, sha256, sha512

    /// The number of bytes of a digest, and of an HMAC.
    package var digestSize: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// What a block cipher does with its input.
package enum CipherDirection: Sendable { case encrypt, decrypt }
