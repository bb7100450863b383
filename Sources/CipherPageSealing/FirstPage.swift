internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite

extension DatabaseFile {
    /// The content of the first page of an encrypted file, in any format, for what the header holds and no SQL tells.
    ///
    /// The key has opened the file before, and SQLCipher has authenticated the page then.
    ///
    /// - Parameter key: The raw key with the file's salt.
    /// - Throws: ``DatabaseError`` where the file cannot be read, ``KeyError`` where the cryptographic library refuses.
    package func firstPage(key: CipherKey, settings: CipherSettings) throws -> [UInt8] {
        try key.openFirstPage(read(at: 0, count: settings.pageSize), settings)
    }
}

extension CipherKey {
    /// The content of an encrypted first page, from the file or its log, which is not authenticated here.
    ///
    /// Source: SQLCipher Design, "Database Encryption and Decryption".
    ///
    /// - Throws: ``DatabaseError`` where it is no whole page, ``KeyError`` where the cryptographic library refuses.
    package func openFirstPage(_ page: [UInt8], _ settings: CipherSettings) throws -> [UInt8] {
        let end = settings.pageSize - settings.reservedBytes
        guard page.count == settings.pageSize else {
            throw DatabaseError(extendedCode: DatabaseError.corrupt, message: "the file has no whole page")
        }
        // The salt, or the part of the header that stays readable, is not encrypted.
        let start = max(CipherKey.saltLength, settings.plaintextHeaderSize)
        guard let decryption = rawBytes.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }) else {
            throw KeyError.derivationFailed
        }
        var content = [UInt8](repeating: 0, count: end - start)
        let vector = Array(page[end..<(end + PageSealer.vectorSize)])
        guard decryption.apply(Array(page[start..<end]), count: end - start, vector: vector, into: &content) else {
            throw KeyError.derivationFailed
        }
        return PageSealer.magic + page[PageSealer.magic.count..<start] + content
    }
}
