internal import COpenSSL

/// Digests of bytes that are no secret.
package enum Digest {
    /// SHA-256; `nil` where libcrypto was built without it.
    ///
    /// The corresponding C function is `EVP_Digest`.
    package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard EVP_Digest(bytes.baseAddress, bytes.count, &digest, &count, EVP_sha256(), nil) == 1, count == 32 else {
            return nil
        }
        return digest
    }
}
