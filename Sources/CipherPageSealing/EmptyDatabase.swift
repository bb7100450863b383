internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite

extension CipherKey {
    /// A database without tables and without an encoding yet, as one sealed page in SQLCipher 4's default format.
    ///
    /// Source: SQLite, "Database File Format", sections 1.3 and 1.6.
    ///
    /// - Throws: ``KeyError`` for a key without its salt, or where the cryptographic library refuses.
    package func sealedEmptyDatabase() throws -> [UInt8] {
        let size = PageSealer.pageSize
        let content = size - PageSealer.reservedSize
        var page = [UInt8](repeating: 0, count: size)
        page.replaceSubrange(0..<16, with: PageSealer.magic)
        page.replaceSubrange(
            16..<24, with: [UInt8(size >> 8), UInt8(size & 255), 1, 1, UInt8(PageSealer.reservedSize), 64, 32, 32])
        // The change counter, the number of pages, and the counter to which that belongs.
        for offset in [27, 31, 95] { page[offset] = 1 }
        // A leaf of a table, without cells.
        page[100] = 13
        page.replaceSubrange(105..<107, with: [UInt8(content >> 8), UInt8(content & 255)])
        var vector = [UInt8](repeating: 0, count: PageSealer.vectorSize)
        var sealed = [UInt8](repeating: 0, count: size)
        guard vector.withUnsafeMutableBytes(Cryptography.randomize),
            try PageSealer(SealingKeys(self)).seal(page, number: 1, vector: vector, into: &sealed)
        else { throw KeyError.derivationFailed }
        return sealed
    }
}
