internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite
package import CipherSQLiteFormat

/// The pages of an encrypted database in any of SQLCipher's formats, each authenticated before it is opened: one that is not
/// what its writer sealed is not there.
///
/// For files that may be damaged anywhere, whose sealed pages somebody else supplies, be they in the file, its log or its
/// journal. Format 1 authenticates nothing: of its pages those count that are no noise once they are opened.
/// Source: SQLCipher Design, "Database Encryption and Decryption", "Per-Page MAC" and "Key Derivation".
// Not `Sendable`: the contexts of the cryptographic library are one thread's.
package final class EncryptedPages<Sealed: PageSource>: PageSource {
    /// The sizes by the settings, until page 1 tells more reserved bytes, as it does in old formats that a newer SQLCipher
    /// wrote.
    package var geometry: PageGeometry
    package var pageCount: UInt32 { sealed.pageCount }

    private let sealed: Sealed
    private let settings: CipherSettings
    private let decryption: AESCBC
    /// `nil` in format 1.
    private let authentication: HMAC?
    private let macSize: Int
    private static var vectorSize: Int { 16 }
    private static var magic: [UInt8] { Array("SQLite format 3\0".utf8) }
    private let memory: UnsafeMutableRawBufferPointer

    /// - Parameters:
    ///   - sealed: The pages as they are in the files, of the size that the settings say.
    ///   - key: The raw key with the file's salt.
    /// - Throws: ``KeyError`` for a key without its salt, or where the cryptographic library refuses.
    package init(_ sealed: Sealed, key: CipherKey, settings: CipherSettings) throws {
        guard let salt = key.salt else { throw KeyError.malformed }
        let encryptionKey = key.rawBytes
        guard let decryption = encryptionKey.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
            let geometry = PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes)
        else { throw KeyError.derivationFailed }
        self.sealed = sealed
        self.settings = settings
        self.decryption = decryption
        self.geometry = geometry
        if settings.compatibility >= 2 {
            // The salt of the HMAC key is the file's, each byte of it changed by 0x3a; two rounds.
            let macSalt = salt.withUnsafeBytes { $0.map { $0 ^ 0x3a } }
            let macKey = try SecretBytes(count: CipherKey.rawKeyLength) { output in
                let isDone = encryptionKey.withUnsafeBytes { key in
                    macSalt.withUnsafeBytes {
                        Cryptography.pbkdf2(
                            settings.kdfAlgorithm.function, password: key, salt: $0, rounds: 2, into: output)
                    }
                }
                guard isDone else { throw KeyError.derivationFailed }
            }
            guard let context = macKey.withUnsafeBytes({ HMAC(settings.hmacAlgorithm.function, key: $0) }) else {
                throw KeyError.derivationFailed
            }
            authentication = context
            macSize = settings.hmacAlgorithm.function.digestSize
        } else {
            authentication = nil
            macSize = 0
        }
        memory = .allocate(byteCount: settings.pageSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    package func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        guard scratch.count >= settings.pageSize, let bytes = try sealed.lend(page, memory),
            bytes.count >= settings.pageSize,
            let input = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let output = scratch.baseAddress?.assumingMemoryBound(to: UInt8.self), open(input, page, into: output)
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: scratch[..<settings.pageSize])
    }

    private func open(
        _ bytes: UnsafePointer<UInt8>, _ page: UInt32, into content: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        // The salt, or the part of the header that stays readable, is neither encrypted nor authenticated.
        let start = page == 1 ? max(CipherKey.saltLength, settings.plaintextHeaderSize) : 0
        let end = settings.pageSize - settings.reservedBytes
        guard isAuthentic(bytes, page, from: start, to: end),
            decryption.apply(bytes + start, count: end - start, vector: bytes + end, into: content + start)
        else { return false }
        if start > 0 {
            content.update(from: Self.magic, count: Self.magic.count)
            (content + Self.magic.count).update(from: bytes + Self.magic.count, count: start - Self.magic.count)
        }
        (content + end).update(repeating: 0, count: settings.reservedBytes)
        return true
    }

    /// The HMAC is over the encrypted content, the initialisation vector and the page's number, lowest byte first.
    private func isAuthentic(_ bytes: UnsafePointer<UInt8>, _ page: UInt32, from start: Int, to end: Int) -> Bool {
        guard let authentication else { return true }
        var mac = [UInt8](repeating: 0, count: macSize)
        let number = withUnsafeBytes(of: page.littleEndian) { Array($0) }
        let isComputed =
            authentication.begin()
            && authentication.update(bytes + start, count: end + Self.vectorSize - start)
            && authentication.update(number, count: number.count)
            && mac.withUnsafeMutableBufferPointer { $0.baseAddress.map(authentication.finish) ?? false }
        let stored = UnsafeRawBufferPointer(start: bytes + end + Self.vectorSize, count: macSize)
        return isComputed && mac.withUnsafeBytes { Cryptography.areEqual($0, stored) }
    }
}
