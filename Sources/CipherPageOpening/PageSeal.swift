package import CipherPrimitives
package import CipherSQLite

/// The way in which the pages of a file are sealed: the values from ``CipherSettings``, and other values that
/// SQLCipher's pragmas can set.
///
/// Source: SQLCipher Design, "Database Encryption and Decryption" and "Per-Page MAC"; SQLCipher API,
/// `PRAGMA cipher_use_hmac`, `PRAGMA cipher_hmac_salt_mask`, `PRAGMA cipher_hmac_pgno`.
package struct PageSeal: Hashable, Sendable {
    /// The size of a page in bytes.
    package let pageSize: Int
    /// The hash function of the HMAC at the end of each page; `nil` if there is no HMAC.
    package let hmac: CipherSettings.Digest?
    /// The hash function with which the HMAC's key is derived.
    package let kdf: CipherSettings.Digest
    /// The mask with which each byte of the salt is XORed to derive the HMAC's key.
    package let saltMask: UInt8
    /// Whether the page number is big-endian in the HMAC's input.
    package let isBigEndian: Bool

    package static let vectorSize = 16
    package static let usualMask: UInt8 = 0x3a
    /// The known masks; 0 was the mask of early releases of SQLCipher 2.
    package static let masks: [UInt8] = [usualMask, 0]
    package static let pageSizes = [4096, 1024, 8192, 2048, 16_384, 32_768, 65_536, 512]

    package init(
        pageSize: Int, hmac: CipherSettings.Digest?, kdf: CipherSettings.Digest, saltMask: UInt8 = usualMask,
        isBigEndian: Bool = false
    ) {
        self.pageSize = pageSize
        self.hmac = hmac
        self.kdf = kdf
        self.saltMask = saltMask
        self.isBigEndian = isBigEndian
    }

    /// Creates the seal for cipher settings; format 1 has no HMAC.
    package init(_ settings: CipherSettings) {
        self.init(
            pageSize: settings.pageSize, hmac: settings.isAuthenticated ? settings.hmacAlgorithm : nil,
            kdf: settings.kdfAlgorithm)
    }

    /// The number of reserved bytes at the end of a page, in whole AES blocks.
    package var reserved: Int { Self.vectorSize + ((hmac?.function.digestSize ?? 0) + 15) / 16 * 16 }
    /// The offset at which the initialization vector begins.
    package var contentEnd: Int { pageSize - reserved }

    package var isUsual: Bool { saltMask == Self.usualMask && !isBigEndian }

    /// Decrypts the content of a page, without the reserved bytes at its end.
    ///
    /// - Parameters:
    ///   - page: The bytes of a whole page.
    ///   - start: The number of bytes at the beginning of the page that are not encrypted.
    ///   - content: Memory that receives the bytes from `start` to `contentEnd`, at the same offsets.
    /// - Returns: Whether the cryptographic library succeeded.
    package func open(
        _ page: UnsafePointer<UInt8>, from start: Int, _ decryption: AESCBC, into content: UnsafeMutablePointer<UInt8>
    ) -> Bool {
        contentEnd > start
            && decryption.apply(
                page + start, count: contentEnd - start, vector: page + contentEnd, into: content + start)
    }
}

/// The HMAC of pages with one key.
///
/// The HMAC is over the encrypted content, the initialization vector and the page's number. Its key is derived in two
/// rounds from the file's key and the file's salt, each byte of which is XORed with the mask.
/// Source: SQLCipher Design, "Per-Page MAC".
// Not `Sendable`: the context of the cryptographic library and the buffer belong to one thread.
package final class PageAuthenticator {
    private let seal: PageSeal
    private let hmac: HMAC
    private let computed: UnsafeMutableRawBufferPointer
    /// The lanes for several pages at once; `nil` if pages are authenticated one after the other.
    private let lanes: MessageLanes?

    /// Creates an authenticator; returns `nil` for a seal without an HMAC, or if the cryptographic library fails.
    ///
    /// - Parameter isForMany: Whether to prepare for the authentication of many pages.
    package init?(_ seal: PageSeal, key: SecretBytes, salt: [UInt8], isForMany: Bool = false) {
        guard let digest = seal.hmac else { return nil }
        var isDerived = false
        let made = SecretBytes(count: CipherKey.rawKeyLength) { output in
            isDerived = key.withUnsafeBytes { key in
                salt.map { $0 ^ seal.saltMask }.withUnsafeBytes {
                    Cryptography.pbkdf2(seal.kdf.function, password: key, salt: $0, rounds: 2, into: output)
                }
            }
        }
        guard isDerived, let hmac = made.withUnsafeBytes({ HMAC(digest.function, key: $0) }) else { return nil }
        self.seal = seal
        self.hmac = hmac
        computed = .allocate(byteCount: digest.function.digestSize, alignment: 16)
        let takesLanes = isForMany && digest == .sha512 && !seal.isBigEndian
        lanes =
            !takesLanes
            ? nil
            : key.withUnsafeBytes { key in
                made.withUnsafeBytes { MessageLanes(encryption: key, authentication: $0) }
            }
    }

    /// Whether ``areAuthentic(_:from:)`` is available.
    var takesMany: Bool { lanes != nil }

    /// Returns whether each of several pages, other than page 1, was sealed with this key and has not changed since.
    ///
    /// - Parameters:
    ///   - pages: The pages, one after the other, in memory in which their HMACs are overwritten.
    ///   - first: The number of the first of these pages.
    /// - Returns: An empty array if ``takesMany`` is `false` or the cryptographic library fails.
    func areAuthentic(_ pages: UnsafeMutableRawBufferPointer, from first: UInt32) -> [Bool] {
        guard let lanes, let start = pages.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return [] }
        let (count, length, size) = (pages.count / seal.pageSize, seal.contentEnd + PageSeal.vectorSize, computed.count)
        return withUnsafeTemporaryAllocation(byteCount: 2 * count * size, alignment: 16) { memory in
            guard let told = memory.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return [] }
            let codes = told + count * size
            let messages = (0..<count).map { index in
                let page = start + index * seal.pageSize
                (told + index * size).update(from: page + length, count: size)
                let number = (first + UInt32(index)).littleEndian
                UnsafeMutableRawPointer(page + length).storeBytes(of: number, as: UInt32.self)
                return MessageLanes.Message(page, count: length + 4, into: codes + index * size)
            }
            guard lanes.authenticate(messages) else { return [] }
            return (0..<count).map { index in
                Cryptography.areEqual(
                    UnsafeRawBufferPointer(start: told + index * size, count: size),
                    UnsafeRawBufferPointer(start: codes + index * size, count: size))
            }
        }
    }

    deinit { computed.deallocate() }

    /// Returns whether a page was sealed with this key and has not changed since.
    ///
    /// - Parameters:
    ///   - page: The bytes of a whole page.
    ///   - start: The number of bytes at the beginning of the page that are neither encrypted nor authenticated.
    package func isAuthentic(_ page: UnsafeRawBufferPointer, _ number: UInt32, from start: Int) -> Bool {
        let mac = seal.contentEnd + PageSeal.vectorSize
        guard mac > start, page.count == seal.pageSize,
            let bytes = page.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let result = computed.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return false }
        let isComputed = withUnsafeBytes(of: seal.isBigEndian ? number.bigEndian : number.littleEndian) { number in
            number.withMemoryRebound(to: UInt8.self) { number in
                guard let number = number.baseAddress else { return false }
                return hmac.begin() && hmac.update(bytes + start, count: mac - start) && hmac.update(number, count: 4)
                    && hmac.finish(into: result)
            }
        }
        return isComputed
            && Cryptography.areEqual(
                UnsafeRawBufferPointer(computed), UnsafeRawBufferPointer(start: bytes + mac, count: computed.count))
    }
}

extension PageSeal {
    /// Returns the content of a page, without the reserved bytes at its end; `nil` if the cryptographic library fails.
    ///
    /// - Parameter start: The number of bytes at the beginning of the page that are not encrypted.
    package func opened(_ page: [UInt8], from start: Int, _ decryption: AESCBC) -> [UInt8]? {
        guard page.count == pageSize, contentEnd > start else { return nil }
        var content = Array(page[..<contentEnd])
        return open(page, from: start, decryption, into: &content) ? content : nil
    }
}
