internal import CipherErrors
internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Uses the pages of an encrypted file to check keys, with libcrypto alone.
///
/// SQLCipher is used once a key has been found.
///
/// SQLite keeps zeros at bytes 72 to 91 of page 1. In CBC mode, decrypting a block needs only the key and the block
/// before it. These bytes therefore distinguish the right key from other keys, whatever the page size, HMAC and
/// initialization vector are, and even in a file that is truncated within its first page. If that page is damaged, the
/// HMAC of another page, or its shape, decides. Source: NIST SP 800-38A, section 6.2; SQLite, "Database File Format",
/// section 1.3.
final class PageProbe {
    /// The evidence that a key is the file's.
    enum Evidence: Equatable {
        /// The header on page 1.
        case header
        /// An authentic page.
        case page(UInt32, PageSeal)
        /// The shape of a page that cannot be authenticated here, because the salt is lost or there is no HMAC.
        case shape(UInt32, pageSize: Int, reserved: Int)
    }

    let file: DatabaseFile
    let size: Int64
    /// The beginning of the file, up to the size of the largest possible page.
    let start: [UInt8]
    let hasPlaintextHeader: Bool
    private var samples: [Int: [(number: UInt32, page: [UInt8])]] = [:]

    private static let mostSamples = 3

    init(_ file: DatabaseFile, hasPlaintextHeader: Bool) throws {
        self.file = file
        self.hasPlaintextHeader = hasPlaintextHeader
        size = try file.size()
        start = try file.read(at: 0, count: 65_536)
        for pageSize in PageSeal.pageSizes {
            let pages = size / Int64(pageSize)
            guard pages > 1 else { continue }
            let numbers = Set([2, pages / 2 + 1, pages]).filter { $0 > 1 }.sorted().prefix(Self.mostSamples)
            samples[pageSize] = try numbers.map { number in
                (
                    UInt32(clamping: number),
                    try file.read(at: (number - 1) * Int64(pageSize), count: pageSize)
                )
            }.filter { sample in sample.page.contains { $0 != 0 } }
        }
    }

    /// The salt that the file contains; `nil` if its beginning is readable.
    var salt: [UInt8]? {
        hasPlaintextHeader || start.count < CipherKey.saltLength ? nil : Array(start.prefix(CipherKey.saltLength))
    }

    /// The possible numbers of bytes at the start of page 1 that are readable or are the salt.
    private var firstPageStarts: [Int] { hasPlaintextHeader ? [32, 16, 48, 64, 80] : [CipherKey.saltLength] }

    // MARK: Keys

    /// Returns the evidence that 32 bytes are the key of the file; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - kdfs: The hash functions with which the key of the HMAC may have been derived.
    func evidence(for key: SecretBytes, salt: [UInt8]?, _ kdfs: [CipherSettings.Digest]) -> Evidence? {
        if key.withUnsafeBytes({ opensHeader($0) }) { return .header }
        if let salt {
            for seal in seals(kdfs, masks: [PageSeal.usualMask], bigEndian: [false]) {
                guard let authenticator = PageAuthenticator(seal, key: key, salt: salt) else { continue }
                if authenticStart(authenticator, seal) != nil { return .page(1, seal) }
                if let number = authenticPage(authenticator, seal) { return .page(number, seal) }
            }
        }
        return shape(under: key)
    }

    /// Returns whether a key decrypts the header on page 1.
    func opensHeader(_ key: UnsafeRawBufferPointer) -> Bool {
        // This is the last block that contains some of the zeros: 96 bits of them.
        let (block, zeros) = (80, 80..<92)
        guard start.count >= block + 16, !hasPlaintextHeader || start[zeros].contains(where: { $0 != 0 }),
            let decryption = AESCBC(.decrypt, key: key)
        else { return false }
        var opened = [UInt8](repeating: 0, count: 16)
        let isDone = start.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map {
                decryption.apply($0 + block, count: 16, vector: $0 + block - 16, into: &opened)
            }
        }
        return isDone == true && zeros.allSatisfy { opened[$0 - block] == 0 }
    }

    // MARK: Seals

    /// The way in which a file is sealed (encrypted and authenticated).
    struct Sealed {
        let key: SecretBytes
        /// The salt with which pages are authentic; `nil` if the pages have no HMAC.
        let salt: [UInt8]?
        let seal: PageSeal
        /// The number of bytes at the start of page 1 that are not encrypted; `nil` if the page is damaged.
        let firstPageStart: Int?
        /// Whether these bytes are a readable header, and not the salt.
        let hasPlaintextHeader: Bool
    }

    /// Returns how the file is sealed with a key; `nil` if no page that was examined is authentic, and page 1 is not
    /// that of a file without HMACs.
    ///
    /// - Parameters:
    ///   - salts: The salts that the file may have.
    ///   - kdfs: The hash functions with which the key of the HMAC may have been derived.
    func sealed(under key: SecretBytes, salts: [[UInt8]], _ kdfs: [CipherSettings.Digest]) -> Sealed? {
        func sealed(_ salt: [UInt8]?, _ seal: PageSeal, _ start: Int?) -> Sealed {
            Sealed(key: key, salt: salt, seal: seal, firstPageStart: start, hasPlaintextHeader: hasPlaintextHeader)
        }
        for salt in salts {
            if let (seal, start) = seal(under: key, salt: salt, kdfs) { return sealed(salt, seal, start) }
        }
        guard key.withUnsafeBytes({ opensHeader($0) }), let layout = layout(under: key) else { return nil }
        guard layout.reserved >= 48 else {
            let seal = PageSeal(pageSize: layout.pageSize, hmac: nil, kdf: kdfs.count == 1 ? kdfs[0] : .sha1)
            return sealed(nil, seal, layout.firstPageStart)
        }
        for salt in salts {
            if let (seal, start) = unusualSeal(under: key, salt: salt, kdfs, pageSize: layout.pageSize) {
                return sealed(salt, seal, start)
            }
        }
        return nil
    }

    /// Returns how the pages are sealed with a key; `nil` if no page is authentic.
    private func seal(
        under key: SecretBytes, salt: [UInt8], _ kdfs: [CipherSettings.Digest]
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        seal(under: key, salt: salt, among: seals(kdfs, masks: PageSeal.masks, bigEndian: [false, true]))
    }

    /// Does the same as ``seal(under:salt:_:)`` with every mask of the salt, for one page size.
    private func unusualSeal(
        under key: SecretBytes, salt: [UInt8], _ kdfs: [CipherSettings.Digest], pageSize: Int
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        let all = seals(kdfs, masks: Array(UInt8.min...UInt8.max), bigEndian: [false, true], pageSizes: [pageSize])
        return seal(under: key, salt: salt, among: all)
    }

    private func seal(
        under key: SecretBytes, salt: [UInt8], among seals: [PageSeal]
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        for seal in seals {
            guard let authenticator = PageAuthenticator(seal, key: key, salt: salt) else { continue }
            if let pageStart = authenticStart(authenticator, seal) { return (seal, pageStart) }
            if authenticPage(authenticator, seal) != nil { return (seal, nil) }
        }
        return nil
    }

    /// Returns whether pages other than the first were examined.
    func hasOtherPages(of pageSize: Int) -> Bool { samples[pageSize]?.isEmpty == false }

    /// Returns the page size and the number of bytes that SQLCipher reserves at the end of a page, from the header
    /// decrypted with its initialization vector.
    ///
    /// This is for files without an HMAC, and for a page 1 whose HMAC is wrong.
    ///
    /// The header may reserve more bytes: SQLite never reclaims the bytes that an earlier format reserved.
    func layout(under key: SecretBytes) -> (pageSize: Int, reserved: Int, firstPageStart: Int)? {
        guard let decryption = key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }) else { return nil }
        for pageStart in firstPageStarts {
            for pageSize in PageSeal.pageSizes where start.count >= pageSize {
                for hmac in [nil, CipherSettings.Digest.sha1, .sha512] {
                    let seal = PageSeal(pageSize: pageSize, hmac: hmac, kdf: .sha1)
                    guard let page = seal.opened(Array(start[..<pageSize]), from: pageStart, decryption),
                        FixedHeaderFields.areValid(page), FixedHeaderFields.pageSize(page) == pageSize
                    else { continue }
                    return (pageSize, seal.reserved, pageStart)
                }
            }
        }
        return nil
    }

    /// Returns the offset from which page 1 is authentic; `nil` if it is not authentic.
    func authenticStart(_ authenticator: PageAuthenticator, _ seal: PageSeal) -> Int? {
        guard start.count >= seal.pageSize else { return nil }
        return start.withUnsafeBytes { bytes in
            let page = UnsafeRawBufferPointer(rebasing: bytes[..<seal.pageSize])
            return firstPageStarts.first { authenticator.isAuthentic(page, 1, from: $0) }
        }
    }

    private func authenticPage(_ authenticator: PageAuthenticator, _ seal: PageSeal) -> UInt32? {
        samples[seal.pageSize]?.first { sample in
            sample.page.withUnsafeBytes { authenticator.isAuthentic($0, sample.number, from: 0) }
        }?.number
    }

    private func seals(
        _ kdfs: [CipherSettings.Digest], masks: [UInt8], bigEndian: [Bool], pageSizes: [Int] = PageSeal.pageSizes
    ) -> [PageSeal] {
        masks.flatMap { mask in
            bigEndian.flatMap { isBigEndian in
                kdfs.flatMap { kdf in
                    CipherSettings.Digest.allCases.reversed().flatMap { hmac in
                        pageSizes.map {
                            PageSeal(pageSize: $0, hmac: hmac, kdf: kdf, saltMask: mask, isBigEndian: isBigEndian)
                        }
                    }
                }
            }
        }
    }

    /// Returns a page whose content, decrypted with a key, has the shape of a b-tree page.
    private func shape(under key: SecretBytes) -> Evidence? {
        guard let decryption = key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }) else { return nil }
        for pageSize in PageSeal.pageSizes {
            for hmac in [nil, CipherSettings.Digest.sha1, .sha512] {
                let seal = PageSeal(pageSize: pageSize, hmac: hmac, kdf: .sha1)
                for sample in samples[pageSize] ?? [] {
                    guard let content = seal.opened(sample.page, from: 0, decryption),
                        PageShape(content + [UInt8](repeating: 0, count: seal.reserved)).isTree
                    else { continue }
                    return .shape(sample.number, pageSize: pageSize, reserved: seal.reserved)
                }
            }
        }
        return nil
    }

    /// The page size of a plaintext database; `nil` if the pages are not those of such a database.
    func plaintextPageSize() throws -> Int? {
        let (file, size) = (file, size)
        return try PageGeometry.guess(
            ReadBytes(size: size) { offset, buffer in
                let bytes = try file.read(at: offset, count: buffer.count)
                buffer.copyBytes(from: bytes)
                return bytes.count == buffer.count
            })?.pageSize
    }
}
