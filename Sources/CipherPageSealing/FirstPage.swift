internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite

extension DatabaseFile {
    /// Returns the content of the first page of an encrypted file, in any format, to read header fields that no SQL
    /// returns.
    ///
    /// The key must have opened the file before, so that SQLCipher has authenticated the page.
    ///
    /// - Parameter key: The raw key with the file's salt.
    /// - Throws: ``DatabaseError`` if the file cannot be read; ``KeyError`` if the cryptographic library fails.
    package func firstPage(key: CipherKey, settings: CipherSettings) throws -> [UInt8] {
        try key.openFirstPage(read(at: 0, count: settings.pageSize), settings)
    }
}

extension CipherKey {
    /// Returns the content of an encrypted first page, from the file or its log, without authenticating it.
    ///
    /// Source: SQLCipher Design, "Database Encryption and Decryption".
    ///
    /// - Throws: ``DatabaseError`` if the page is not complete; ``KeyError`` if the cryptographic library fails.
    package func openFirstPage(_ page: [UInt8], _ settings: CipherSettings) throws -> [UInt8] {
        let end = settings.pageSize - settings.reservedBytes
        guard page.count == settings.pageSize else {
            throw DatabaseError(extendedCode: DatabaseError.corrupt, message: "the file contains no complete page")
        }
        // The salt, or the plaintext part of the header, is not encrypted.
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
