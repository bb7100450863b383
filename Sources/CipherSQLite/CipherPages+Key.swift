internal import CipherPrimitives

extension CipherPages {
    /// Describes the pages of a file with a key.
    ///
    /// Format 1 does not authenticate pages. Source: SQLCipher Design, "Database Encryption and Decryption".
    init(_ key: CipherKey, _ settings: CipherSettings, isReadOnly: Bool) {
        let salt = CipherKey.saltLength
        let end = settings.pageSize - settings.reservedBytes
        let decrypt: (UnsafeRawBufferPointer) -> [UInt8] = { page in
            // The blocks that contain the header.
            var header = [UInt8](repeating: 0, count: 112)
            let count = header.count - salt
            let isDecrypted = header.withUnsafeMutableBufferPointer { header in
                guard let raw = try? key.rawKey(salt: SecretBytes(page[..<salt]), settings: settings),
                    let cipher = raw.rawBytes.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
                    let start = header.baseAddress
                else { return false }
                return cipher.apply(
                    Array(page[salt..<(salt + count)]), count: count, vector: Array(page[end..<(end + 16)]),
                    into: start + salt)
            }
            return isDecrypted ? header : []
        }
        let possible: Set = [settings.reservedBytes, CipherSettings().reservedBytes]
        self.init(
            size: settings.pageSize, reserved: settings.reservedBytes, readableReserved: possible,
            isReservedSizeProven: settings.plaintextHeaderSize == 0 || possible.count == 1,
            decryptHeader: settings.isAuthenticated ? nil : decrypt, refusesBlankPages: isReadOnly)
    }
}
