internal import CipherErrors
internal import CipherPrimitives

/// The first half of the SHA-256 of a file's relative path.
///
/// It determines the file's shard and identifies the file in reports.
struct PathDigest: Hashable, Sendable {
    /// The first eight bytes, the most significant first.
    let high: UInt64
    private let low: UInt64

    /// Creates the digest of a path relative to the folder of its fleet.
    init(_ path: String) {
        guard let digest = SystemPath.bytes(path).withUnsafeBytes({ Cryptography.sha256($0) }) else {
            // SQLCipher itself needs the SHA-2 functions of the same library for its pages.
            preconditionFailure("the cryptographic library does not provide SHA-256")
        }
        high = digest[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
