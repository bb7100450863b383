internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite

/// How the pages of a file are sealed: what ``CipherSettings`` says of it, and what SQLCipher's pragmas can set besides.
///
/// Source: SQLCipher Design, "Database Encryption and Decryption" and "Per-Page MAC"; SQLCipher API,
/// `PRAGMA cipher_use_hmac`, `PRAGMA cipher_hmac_salt_mask`, `PRAGMA cipher_hmac_pgno`.
struct PageSeal: Hashable {
    /// In bytes.
    let pageSize: Int
    /// The hash function of the HMAC behind each page; `nil` where there is none.
    let hmac: CipherSettings.Digest?
    /// The hash function by which the key of the HMAC is derived.
    let kdf: CipherSettings.Digest
    /// What each byte of the salt is changed by for the key of the HMAC.
    var saltMask: UInt8 = PageSeal.usualMask
    /// Whether the page's number goes into the HMAC with its highest byte first.
    var isBigEndian = false

    static let vectorSize = 16
    static let usualMask: UInt8 = 0x3a
    /// 0 was the mask of early releases of SQLCipher 2.
    static let masks: [UInt8] = [usualMask, 0]
    static let pageSizes = [4096, 1024, 8192, 2048, 16_384, 32_768, 65_536, 512]

    /// Bytes at the end of a page, in whole blocks of AES.
    var reserved: Int { Self.vectorSize + ((hmac?.function.digestSize ?? 0) + 15) / 16 * 16 }
    /// Where the initialisation vector begins.
    var contentEnd: Int { pageSize - reserved }

    var isUsual: Bool { saltMask == Self.usualMask && !isBigEndian }
}

/// The HMAC of pages under one key.
struct PageAuthenticator {
    private let hmac: HMAC
    private let digestSize: Int
    private let isBigEndian: Bool

    /// - Returns: `nil` for a seal without an HMAC, or where the cryptographic library refuses.
    init?(_ seal: PageSeal, key: SecretBytes, salt: [UInt8]) {
        guard let digest = seal.hmac else { return nil }
        let mask = seal.saltMask
        let made = SecretBytes(count: CipherKey.rawKeyLength) { output in
            _ = key.withUnsafeBytes { key in
                salt.map { $0 ^ mask }.withUnsafeBytes {
                    Cryptography.pbkdf2(seal.kdf.function, password: key, salt: $0, rounds: 2, into: output)
                }
            }
        }
        guard let hmac = made.withUnsafeBytes({ HMAC(digest.function, key: $0) }) else { return nil }
        self.hmac = hmac
        digestSize = digest.function.digestSize
        isBigEndian = seal.isBigEndian
    }

    /// Whether a page is what was sealed under this key.
    ///
    /// - Parameters:
    ///   - page: As many bytes as a page has.
    ///   - start: How much of its begin is neither encrypted nor authenticated.
    func isAuthentic(_ page: UnsafeRawBufferPointer, _ number: UInt32, from start: Int, _ seal: PageSeal) -> Bool {
        let mac = seal.contentEnd + PageSeal.vectorSize
        guard mac > start, page.count == seal.pageSize, let base = page.baseAddress else { return false }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        var computed = [UInt8](repeating: 0, count: digestSize)
        let number = withUnsafeBytes(of: isBigEndian ? number.bigEndian : number.littleEndian) { Array($0) }
        guard hmac.begin(), hmac.update(bytes + start, count: mac - start), hmac.update(number, count: number.count),
            computed.withUnsafeMutableBufferPointer({ $0.baseAddress.map { hmac.finish(into: $0) } }) == true
        else { return false }
        return computed.withUnsafeBytes {
            Cryptography.areEqual($0, UnsafeRawBufferPointer(start: bytes + mac, count: digestSize))
        }
    }
}

extension PageSeal {
    /// The content of a page, without the bytes at its end; nothing where the cryptographic library refuses.
    func open(_ page: [UInt8], from start: Int, _ decryption: AESCBC) -> [UInt8]? {
        guard page.count == pageSize, contentEnd > start else { return nil }
        var content = [UInt8](repeating: 0, count: contentEnd - start)
        let vector = Array(page[contentEnd..<(contentEnd + Self.vectorSize)])
        guard decryption.apply(Array(page[start..<contentEnd]), count: content.count, vector: vector, into: &content)
        else { return nil }
        return page[..<start] + content
    }
}
