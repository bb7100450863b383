internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite

/// Seals and opens single pages in the format of SQLCipher 4.
///
/// A sealed page is its content encrypted with AES-256 in CBC mode, the initialization vector, and an HMAC-SHA512 over
/// both and the page number, which is four bytes, little-endian. The first page begins with the salt in place of
/// SQLite's magic string, outside the encrypted and authenticated part. The cryptographic library supplies the
/// algorithms; this class only determines their order. Source: SQLCipher Design, "Database Encryption and Decryption"
/// and "Per-Page MAC".
package final class PageSealer {
    package static let pageSize = 4096
    /// The number of bytes after the content: the initialization vector and the HMAC.
    package static let reservedSize = vectorSize + macSize
    static let vectorSize = 16
    private static let macSize = 64
    private static let contentSize = pageSize - reservedSize

    private let salt: SecretBytes
    private let encryption: AESCBC
    private let decryption: AESCBC
    private let authentication: HMAC
    /// The lanes for several pages at once; `nil` if pages are sealed one after the other.
    private let lanes: MessageLanes?

    /// Creates a sealer with the keys of one file, for one thread at a time.
    ///
    /// - Throws: ``KeyError`` if the cryptographic library fails.
    init(_ keys: SealingKeys) throws {
        guard let encryption = keys.encryption.withUnsafeBytes({ AESCBC(.encrypt, key: $0) }),
            let decryption = keys.encryption.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
            let authentication = keys.authentication.withUnsafeBytes({ HMAC(.sha512, key: $0) })
        else { throw KeyError.derivationFailed }
        salt = keys.salt
        self.encryption = encryption
        self.decryption = decryption
        self.authentication = authentication
        lanes = keys.encryption.withUnsafeBytes { encryption in
            keys.authentication.withUnsafeBytes { MessageLanes(encryption: encryption, authentication: $0) }
        }
    }

    /// A page to seal.
    struct Page {
        let content: UnsafePointer<UInt8>
        let number: UInt32
        /// The initialization vector: 16 random bytes, never used before.
        let vector: UnsafePointer<UInt8>
        /// The memory that receives the sealed page.
        let sealed: UnsafeMutablePointer<UInt8>
    }

    /// Writes the sealed forms of pages; returns `false` if the cryptographic library fails.
    func seal(_ pages: [Page]) -> Bool {
        guard let lanes else {
            return pages.allSatisfy { seal($0.content, number: $0.number, vector: $0.vector, into: $0.sealed) }
        }
        let areEncrypted = lanes.encrypt(
            pages.map { page in
                let skipped = begin(page.number, page.sealed)
                return MessageLanes.Message(
                    page.content + skipped, count: Self.contentSize - skipped, vector: page.vector,
                    into: page.sealed + skipped)
            })
        return areEncrypted
            && lanes.authenticate(
                pages.map { page in
                    let skipped = skippedBytes(of: page.number)
                    let mac = page.sealed + Self.contentSize + Self.vectorSize
                    (page.sealed + Self.contentSize).update(from: page.vector, count: Self.vectorSize)
                    // The number is temporarily in the place of the HMAC, which is written after it is computed.
                    UnsafeMutableRawPointer(mac).storeBytes(of: page.number.littleEndian, as: UInt32.self)
                    return MessageLanes.Message(
                        page.sealed + skipped, count: Self.contentSize + Self.vectorSize + 4 - skipped, into: mac)
                })
    }

    /// Writes the bytes that precede the encrypted bytes of a page, and returns their number.
    private func begin(_ number: UInt32, _ sealed: UnsafeMutablePointer<UInt8>) -> Int {
        let skipped = skippedBytes(of: number)
        if skipped > 0 {
            salt.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: sealed, count: skipped).copyMemory(from: $0) }
        }
        return skipped
    }

    /// Writes the sealed form of a page; returns `false` if the cryptographic library fails.
    ///
    /// - Parameter vector: The initialization vector: 16 random bytes, never used before.
    func seal(
        _ page: UnsafePointer<UInt8>, number: UInt32, vector: UnsafePointer<UInt8>,
        into sealed: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        let skipped = begin(number, sealed)
        guard
            encryption.apply(
                page + skipped, count: Self.contentSize - skipped, vector: vector, into: sealed + skipped)
        else { return false }
        (sealed + Self.contentSize).update(from: vector, count: Self.vectorSize)
        return authenticate(sealed, number, into: sealed + Self.contentSize + Self.vectorSize)
    }

    /// Writes the content of a sealed page; returns `false` if the page is not authentic.
    func open(_ sealed: UnsafePointer<UInt8>, number: UInt32, into page: UnsafeMutablePointer<UInt8>) -> Bool {
        var mac = [UInt8](repeating: 0, count: Self.macSize)
        let stored = sealed + Self.contentSize + Self.vectorSize
        guard
            mac.withUnsafeMutableBufferPointer({ $0.baseAddress.map { authenticate(sealed, number, into: $0) } })
                == true,
            mac.withUnsafeBytes({
                Cryptography.areEqual($0, UnsafeRawBufferPointer(start: stored, count: Self.macSize))
            })
        else { return false }
        let skipped = skippedBytes(of: number)
        if skipped > 0 { page.update(from: Self.magic, count: skipped) }
        guard
            decryption.apply(
                sealed + skipped, count: Self.contentSize - skipped, vector: sealed + Self.contentSize,
                into: page + skipped)
        else { return false }
        (page + Self.contentSize).update(repeating: 0, count: Self.reservedSize)
        return true
    }

    /// Source: SQLite, "Database File Format", section 1.3.1.
    static let magic = Array("SQLite format 3\0".utf8)

    /// Returns the number of bytes at the beginning of a page that are neither encrypted nor authenticated.
    private func skippedBytes(of number: UInt32) -> Int { number == 1 ? salt.count : 0 }

    private func authenticate(
        _ sealed: UnsafePointer<UInt8>, _ number: UInt32, into mac: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        let skipped = skippedBytes(of: number)
        return authentication.begin()
            && authentication.update(sealed + skipped, count: Self.contentSize + Self.vectorSize - skipped)
            && withUnsafeBytes(of: number.littleEndian) { bytes in
                bytes.withMemoryRebound(to: UInt8.self) { bytes in
                    bytes.baseAddress.map { authentication.update($0, count: bytes.count) } ?? false
                }
            }
            && authentication.finish(into: mac)
    }
}
