internal import CipherPrimitives

extension CipherPages {
    /// Describes the pages of a file with a key.
    ///
    /// Format 1 does not authenticate pages. Source: SQLCipher Design, "Database Encryption and Decryption".
    init(_ key: CipherKey, _ settings: CipherSettings) {
        let salt = CipherKey.saltLength
        let end = settings.pageSize - settings.reservedBytes
        let decrypt: (UnsafeRawBufferPointer) -> [UInt8] = { page in
            var header = [UInt8](repeating: 0, count: 16)
            guard let raw = try? key.rawKey(salt: SecretBytes(page[..<salt]), settings: settings),
                let cipher = raw.rawBytes.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
                cipher.apply(
                    Array(page[salt..<(salt + 16)]), count: 16, vector: Array(page[end..<(end + 16)]), into: &header)
            else { return [] }
            return header
        }
        self.init(
            size: settings.pageSize, reserved: settings.reservedBytes,
            decryptHeader: settings.compatibility < 2 ? decrypt : nil)
    }
}
