/// What a version of SQLCipher's file format has: the one table that tells the formats apart.
///
/// Source: SQLCipher API, `PRAGMA cipher_compatibility`; SQLCipher Design.
package struct CipherFormat: Sendable {
    /// The number of the format: the major version of the SQLCipher that introduced it.
    package let number: Int
    /// The size of a page, in bytes, unless another one is chosen.
    let pageSize: Int
    /// The number of PBKDF2 rounds, unless another one is chosen.
    let kdfIterations: Int
    /// The hash function of the pages' HMAC, unless another one is chosen; `nil` if the pages have none.
    package let hmac: CipherSettings.Digest?
    /// The hash function of PBKDF2, unless another one is chosen.
    let kdf: CipherSettings.Digest
    /// Whether other hash functions can be chosen.
    var choosesDigests = false
    /// Whether a part of the header can stay readable.
    package var canHaveReadableHeader = false
    /// Whether new files can have the format.
    package var isWritten = true

    /// All formats, the oldest first.
    package static let all = [
        CipherFormat(number: 1, pageSize: 1024, kdfIterations: 4_000, hmac: nil, kdf: .sha1, isWritten: false),
        CipherFormat(number: 2, pageSize: 1024, kdfIterations: 4_000, hmac: .sha1, kdf: .sha1, isWritten: false),
        CipherFormat(number: 3, pageSize: 1024, kdfIterations: 64_000, hmac: .sha1, kdf: .sha1),
        CipherFormat(
            number: 4, pageSize: 4096, kdfIterations: 256_000, hmac: .sha512, kdf: .sha512, choosesDigests: true,
            canHaveReadableHeader: true),
    ]

    /// The formats that new files can have, the oldest first.
    package static let written = all.filter(\.isWritten)

    /// The newest format.
    package static var newest: CipherFormat { all[all.count - 1] }

    /// Returns the format with a number, and the nearest one for a number that no format has.
    package static func numbered(_ number: Int) -> CipherFormat { all[min(max(number, 1), all.count) - 1] }
}
